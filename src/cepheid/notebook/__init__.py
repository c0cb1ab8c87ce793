"""A query and its matches as a widget in a notebook: Jupyter, marimo, VS Code.

Comes in: a query and events, by `Query.explore`. Goes out: a widget with the time line of the matches, the automaton that one steps through, the
events and the matches. `exploring` reads the arguments and asks for what is shown, as the workbench does (`cepheid.play`); `widget` has the
class, which needs anywidget, of the extra `notebook`. It draws by `assets/widget.js` and, as the workbench, by `views.js` of `cepheid.play`.
"""
