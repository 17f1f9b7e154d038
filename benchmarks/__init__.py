"""Benchmarks: figures that the documentation names, with what they are compared with, measured in the same run.

    make bench                                  # everything, in full: some twenty minutes on two quiet cores
    python -m benchmarks --quick                # everything, small: whether it works
    python -m benchmarks engine names
    python -m benchmarks spark --rows 200000

Sections:

- `memory`: private memory that a worker adds for the model, memory-mapped; beside it a copy, which is what a broadcast
  costs. Eight processes hold the model at once; each first does all of it with a toy model, so that imports, machine
  code and the scratch of a batch are in the base and not in the figure.
- `start`: a worker up to its first batch on a fresh node, with the model's machine code and without it.
- `engine`: nanoseconds a word on one core, Arrow strings in and out, for the levels token, record and dataset and for a
  policy that draws stop words too; beside it a plain Python loop over tokens.
- `names`: what a long list of names costs a word, what a name of each row, what the search by public lists.
- `labelled`: of the labelled names of a CoNLL file (`$DPTEXT_LABELLED`, else the tweets of WNUT 2017) the share that the search
  for names finds, by words and whole names, what else it takes for one, and the expected share that stays under each style.
- `mechanisms`: tokens a second of every mechanism on one core, string to string, beside figures of other implementations that
  were taken elsewhere; what a token costs with short laws and lists, in turn with CusText; the time to make a 1-D list. One
  lexicon: the GloVe excerpt if it is here. Matrix products have one thread, by the environment of a process of their own.
- `papers`: figures of the papers beside ours, with the reason where they differ: CusText's Tables 4 and 6; 1-Diffractor's law,
  speed and memory beside five other mechanisms, with stop words kept and drawn. Most are exact or drawn by fixed numbers.
- `paper_tables`: SST-2 with replaced words beside 1-Diffractor's Table 2, MVC's Table 4 and truncated Laplace. Needs [audit].
- `utility_gain`: what the Bayes remap and fluent draws gain where an attack succeeds equally. Needs the extra [audit].
- `referee`: who finds a row of SST-2, and what is left of the text: masked names, shuffled words, keyed hashes, our styles.
  Needs the extra [audit]; with the extra [presidio] and a model of spaCy, Presidio masks the names (docs/guide/referee.md).
- `spark`: the job on local Spark with Delta Lake; beside it an identity job with the same read, kind of function,
  struct, observed aggregates and write.
- `scale`: what a word costs as the table grows, on one and two cores and on a standalone cluster.

How it is measured: a figure and its peer take turns, round after round, so that a change of the machine's pace meets
both; a ratio is taken within each round. (The rates of other implementations in `mechanisms` are fixed numbers.) The table
shows medians and extremes, and the record holds every round. A goal is `met`, its floor is, or it is `missed`, by the
median.

Real data (the GloVe excerpt, SimLex-999, SST-2) is taken from `$DPTEXT_SHARED_DATA`, else `../shared/data`; without it these
parts are skipped, and the record says so. Texts are made from a lexicon's words with the frequencies of running text.

Each run writes one JSON file to `benchmarks/records/`: machine, versions, date, commit, the command that repeats it, and
per section its figures (`value`, `peer`, `ratio`, `goals`), the facts about what was measured, and what was skipped.
"""
