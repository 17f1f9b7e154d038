"""Words and phrases of private lists: compiled under the run key, found in batches."""
