"""Tables before Spark reads them: schemas, logs, samples, and what must hold of inputs and targets."""
