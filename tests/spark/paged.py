"""Buckets whose keys are in pages that a dict holds, for tests without Spark."""

from __future__ import annotations

import dataclasses

from cepheid.spark.tasks.buckets import Bucket, form_of


class Stored(bytes):
    """What a bucket's `dump` gave, with its pages."""

    pages: dict[int, bytes]


class Pages:
    """A store of pages. calls: what was asked for, in order."""

    def __init__(self):
        self.pages = {}
        self.calls = []

    def get(self, number):
        self.calls.append(("get", number))
        return self.pages.get(number)

    def put(self, number, page):
        self.calls.append(("put", number))
        assert type(page) is bytes
        self.pages[number] = page

    def remove(self, number):
        self.calls.append(("remove", number))
        self.pages.pop(number, None)

    def clear(self):
        self.calls.append(("clear", None))
        self.pages.clear()

    def all(self):
        return iter(list(self.pages.items())[::-1])


class Paged(Bucket):
    """A bucket with pages of `page_keys` keys, None: where they cost less."""

    page_keys: int | None = 1

    def __init__(self, unit):
        unit = dataclasses.replace(unit, page_keys=self.page_keys)
        super().__init__(unit, Pages(), form_of(unit))

    def dump(self):
        data = Stored(super().dump())
        data.pages = dict(self.store.pages)
        if not (self.pages is not None and self.pages.on):
            assert not data.pages
        return data

    def load(self, data):
        self.store.pages = dict(getattr(data, "pages", {}))
        return super().load(data)
