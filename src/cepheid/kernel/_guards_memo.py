"""What is known of questions, and what is to be asked: answers by the values that go with a question. A room of `guards`.

Behind the sets of values stands a table of places by hash, then a row for each question with values: the row before it in the same place of the
table, its answer, the number of the question, the values, and a word with a bit per value that is NULL. A question that is not there gets a row
without an answer: whoever drives the kernel answers all of these at once. Until then the result is not known, and all that comes of it is made again.
At the end of the array, behind the programs, stands where all this is (Q_, from the end). Whoever only reads `forms` writes here alone.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from cepheid.kernel import _no_cython as cython
from cepheid.kernel._guards_layout import *
from cepheid.kernel._guards_sets import hash_of_one


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def write(forms: cython.const[cython.longlong][::1], place: cython.Py_ssize_t, value: cython.longlong) -> cython.void:
    """Write a word behind the sets."""
    if cython.compiled:
        cython.cast(cython.p_longlong, cython.address(forms[place]))[0] = value
    else:
        forms[place] = value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(-9, check=False)
def is_unanswered(forms: cython.const[cython.longlong][::1]) -> cython.int:
    """Whether something was asked that is not known."""
    return forms[forms.shape[0] - Q_UNANSWERED] != 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-9, check=False)
def answer(
    forms: cython.const[cython.longlong][::1],
    question: cython.longlong,
    nulls: cython.longlong,
    values: cython.p_longlong,
    count: cython.Py_ssize_t,
) -> cython.longlong:
    """The answer to a question with some values: 1 if it is true, 0 if not, 2 for NULL; -1: it is not known."""
    last: cython.Py_ssize_t = forms.shape[0]
    base: cython.Py_ssize_t = last - forms[last - Q_BASE]
    hashed: cython.longlong = hash_of_one(question ^ (nulls << 32))
    bucket: cython.Py_ssize_t = 0
    x: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    for k in range(count):
        hashed = hash_of_one(hashed ^ values[k])
    bucket = base + (hashed & (forms[last - Q_PLACES] - 1))
    x = forms[bucket]
    while x != 0:
        x += base
        if forms[x + A_QUESTION] == question and forms[x + A_VALUES + count] == nulls:
            k = 0
            while k < count and forms[x + A_VALUES + k] == values[k]:
                k += 1
            if k == count:
                if forms[x + A_ANSWER] < 0:
                    write(forms, last - Q_UNANSWERED, 1)
                return forms[x + A_ANSWER]
        x = forms[x + A_BEFORE]
    write(forms, last - Q_UNANSWERED, 1)
    x = forms[last - Q_FRESH]
    if x + forms[last - Q_WIDTH] > forms[last - Q_BASE] - forms[last - Q_BEHIND]:
        return -1
    write(forms, last - Q_FRESH, x + forms[last - Q_WIDTH])
    x += base
    write(forms, x + A_BEFORE, forms[bucket])
    write(forms, bucket, x - base)
    write(forms, x + A_ANSWER, -1)
    write(forms, x + A_QUESTION, question)
    for k in range(count):
        write(forms, x + A_VALUES + k, values[k])
    write(forms, x + A_VALUES + count, nulls)
    return -1
