"""Benchmarks: every figure that the documentation names, with what it is compared with, measured in the same run.

    make bench                                  # everything, in full: some forty minutes on two quiet cores
    python -m benchmarks --quick                # everything, small: whether it works
    python -m benchmarks engine mapping
    python -m benchmarks spark --rows 200000

Sections:

- `memory`: private memory that a worker adds for the model, memory-mapped; beside it a copy, which is what a broadcast
  costs. Eight processes hold the model at once; each first does all of it with a toy model, so that imports, machine
  code and the scratch of a batch are in the base and not in the figure.
- `ships`: the same by each value of `run.ship` (artifact, path, broadcast), in Spark's own Python workers.
- `engine`: nanoseconds a word on one core, Arrow strings in and out, for the levels token, record and dataset and for a
  policy that draws stop words too; beside it a plain Python loop over tokens. Then each phase, timed inside the
  engine's own run.
- `labelled`: of the labelled names of a CoNLL file (`$DPTEXT_LABELLED`, else the tweets of WNUT 2017) the share that the search
  for names finds, by words and whole names, what else it takes for one, and the expected share that stays under each style.
- `mapping`: seconds in which CusText compiles; beside it `faiss.knn` of every word over the same matrix.
- `mechanisms`: tokens a second of every mechanism on one core, string to string, beside figures of other implementations that
  were taken elsewhere; what a token costs with short laws and lists, in turn with CusText, and whether it costs more in a
  longer text or with a larger lexicon; laws over the whole lexicon for a range of ε, their compiling and tables; the rate of
  the noise kernel's search beside that of a bare matrix product in turn with it, and what short noise spares; the time to
  make a 1-D list. One lexicon: the GloVe excerpt if it is here. Matrix products have one thread, by the environment of a
  process of their own.
- `lexicon`: SimLex-999 correlations; the time to read a GloVe file, beside a plain reader and decompression alone; the
  time to open a saved lexicon, beside hashing its files.
- `calibration`: the share of words kept and the mean distance to the original, as published and with exact calibration,
  at equal certified ε, and the internal ε. Laws over a whole lexicon are searched for every ε at once over all pairs of
  words; a compiled one is certified beside them.
- `papers`: figures of the papers beside ours, with the reason where they differ: CusText's Tables 4, 6 and 7;
  1-Diffractor's law, speed and memory beside five other mechanisms, with stop words kept and drawn; how much stays under
  calibrated, Mahalanobis, truncated Laplace, Laplace and Gaussian noise. Most are exact or drawn by fixed numbers.
- `attacks`: words a second of the contextual adversary, beside the same in NumPy, record by record; seconds of the Bayes
  adversary over a lexicon, and of reading the law backwards.
- `utility`: accuracy on SST-2 with replaced words beside CusText's Tables 1, 3, 5 and 8 and 1-Diffractor's Table 3; for
  CusText at three ε all audits of utility, the membership and the attribute attack. Needs the extra [audit].
- `importance`: SST-2 with a share of the words drawn, from 10 to 60 %: accuracy and inference by inverse document frequency, by
  attention where `$DPTEXT_ENCODER` names an encoder, and at random, beside the paper's figures; which kinds of
  words are important. Needs the extra [audit].
- `frontier`: the time of a comparison of six mechanisms at five ε each on SST-2, and which is best at each level of risk. Needs
  the extra [audit].
- `spark`: the job on local Spark with Delta Lake; beside it an identity job with the same read, kind of function,
  struct, observed aggregates and write.

How it is measured: a figure and its peer take turns, round after round, so that a change of the machine's pace meets
both; a ratio is taken within each round. (The rates of other implementations in `mechanisms` are fixed numbers.) The table
shows medians and extremes, and the record holds every round. A goal is `met`, its floor is, or it is `missed`, by the
median.

Real data (the GloVe excerpt, SimLex-999, SST-2) is taken from `$DPTEXT_SHARED_DATA`, else `../shared/data`; without it these
parts are skipped, and the record says so. Texts are made from a lexicon's words with the frequencies of running text.

Each run writes one JSON file to `benchmarks/records/`: machine, versions, date, commit, the command that repeats it, and
per section its figures (`value`, `peer`, `ratio`, `goals`), the facts about what was measured, and what was skipped.
"""
