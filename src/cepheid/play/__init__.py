"""The workbench: a page on this machine where a query meets events while one types.

Comes in: a query and events, from the command line, the page or a link. Goes out: a page with matches, a time line, the automaton with its live
states, and explanations. `api` has the meaning: functions from a dict to a dict, without a web in them; `inputs` reads requests, `tables` shows
events, `answers` matches, `machine` the automaton with the live states of `steps`; `rewriting` has the controls that change a query's text, `code`
writes programs, `examples` is the cookbook. `worker` calls `api` in a process of its own, which `evaluator` bounds in time and memory; `server`
answers the browser; `links` reads shared links. Recognition itself is not here. The server needs the extra `play`.

The widget of a notebook (`cepheid.notebook`) shows the same answers, and draws them by the same `assets/views.js` and `views.css`.
"""
