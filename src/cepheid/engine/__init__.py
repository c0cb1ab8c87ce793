"""Recognition over batches: from a query's plan and events to matches.

Comes in: a program (`automata.program`) and Arrow data. Goes out: matches. One room for each thing that happens to the data, and each imports only
those before it:

* `memory`: where the state of partitions lies, as blocks and slabs, and as bytes;
* `letters`: operators over columns, predicates, the letters that they make of a batch;
* `output`: matches, measures, counts;
* `input`: streams as tables, times, keys, partitions, order, and the marked events that matches may show;
* `evaluations`: the methods, one file each, and what they share: letters come in, chunks of matches go out;
* `plan`: the compiled query, which method evaluates it, at what cost, and how that is explained;
* `run`: whole tables, batches, recognizers, and the definition.

What is not done here: parsing, rewriting, building automata.
"""
