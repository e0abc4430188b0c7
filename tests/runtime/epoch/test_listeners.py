"""Listeners hear of every epoch, and cannot do harm."""

from __future__ import annotations

import logging

import pytest
from epoch_loops import bring, looping

from thalweg.runtime.epoch.listeners import Listeners
from thalweg.runtime.epoch.report import EpochReport


def test_one_that_raises_is_logged_once_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []
    calls: list[int] = []

    def broken(report: EpochReport) -> None:
        calls.append(report.epoch)
        raise ZeroDivisionError("of my own")

    listeners = Listeners()
    for one in (broken, lambda r: heard.append(r.epoch)):
        listeners.add(one)
    loop, log = looping(listeners)
    with caplog.at_level(logging.WARNING, "thalweg"):
        for batch in range(3):
            bring(loop, log, batch)
            loop.drain(lambda: True)
    assert heard == [1, 2, 3]
    assert calls == [1]
    (record,) = caplog.records
    assert "broken" in record.getMessage()
    assert record.exc_info is not None


def test_listeners_come_and_go() -> None:
    first: list[EpochReport] = []
    second: list[EpochReport] = []
    listeners = Listeners()
    hear_first, hear_second = first.append, second.append
    listeners.add(hear_first)
    listeners.add(hear_first)
    loop, log = looping(listeners)
    for batch, act in enumerate(
        (lambda: None, lambda: listeners.add(hear_second), lambda: listeners.remove(hear_first))
    ):
        act()
        bring(loop, log, batch)
        loop.drain(lambda: True)
    assert [r.epoch for r in first] == [1, 2]
    assert [r.epoch for r in second] == [2, 3]
    listeners.remove(hear_first)  # not there any more: nothing happens


def test_one_that_leaves_while_it_is_told() -> None:
    listeners = Listeners()
    heard: list[str] = []

    def once(report: EpochReport) -> None:
        heard.append("once")
        listeners.remove(once)

    listeners.add(once)
    listeners.add(lambda report: heard.append("always"))
    loop, log = looping(listeners)
    for batch in range(2):
        bring(loop, log, batch)
        loop.drain(lambda: True)
    assert heard == ["once", "always", "always"]


def test_an_error_in_progress_still_stops_the_run() -> None:
    loop, log = looping(Listeners())

    def broken(report: EpochReport) -> None:
        raise BrokenPipeError

    loop.progress = broken
    bring(loop, log, 0)
    with pytest.raises(BrokenPipeError):
        loop.drain(lambda: True)
