"""From events to letters: operators over columns, predicates, and the codes by which kernels know letters."""
