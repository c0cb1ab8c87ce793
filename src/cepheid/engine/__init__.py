"""Recognition over batches: from a program and events to matches.

Comes in: a program (`automata.program`) and Arrow data. `predicates` turns each batch into letters, `evaluation` runs the kernel over them,
`matches` holds what comes out; `batch` does this for whole tables, `recognizer` for streams of batches, `order` puts late events in order,
`planner` says which queries this can evaluate and at what cost. What is not done here: parsing, rewriting, building automata.
"""
