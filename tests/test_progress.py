"""The progress display writes to standard error only, in plain lines without a terminal."""

import pytest

from nfgnn import progress as module
from nfgnn.errors import UserError
from nfgnn.progress import Progress, duration, parse_duration


def test_without_a_terminal_the_last_line_reports_all_units(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Progress("reproduce") as progress:
        progress.start(total=3.0, count=2)
        progress.advance(1.0, "seed 0")
        progress.advance(2.0, "seed 1")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "reproduce: 2/2 runs, 0 s left; last: seed 1\n"


def test_lines_are_rate_limited(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LINE_SECONDS", 1e9)
    with Progress("train") as progress:
        progress.start(total=10.0, count=10)
        progress.status("epoch 1")
        progress.stage("spectrum", 1, 4)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(module, "_LINE_SECONDS", 0.0)
    progress.status("epoch 2")
    progress.stage("spectrum", 1, 4)
    assert capsys.readouterr().err.splitlines() == ["  epoch 2", "spectrum: 25 %"]


def test_time_left_follows_the_amount_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    progress = Progress("tune", quiet=True)
    progress.start(total=4.0, count=4)
    clock[0] = 10.0
    progress.advance(1.0, "first of four")
    assert progress.time_left() == "30 s"


def test_stage_seconds_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    progress = Progress(quiet=True)
    for now, stage in ((1.0, "read"), (3.0, "read"), (3.5, "write")):
        clock[0] = now
        progress.stage(stage, 1, 2)
    assert progress.stage_seconds == {"read": 3.0, "write": 0.5}


def test_a_quiet_display_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("train", quiet=True) as progress:
        progress.start(total=1.0, count=1)
        progress.advance(1.0, "done")
        progress.say("a line")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("seconds", "text"), [(3, "3 s"), (119, "119 s"), (600, "10 min"), (7200, "2.0 h")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h", 3600),
        ("1h30m", 5400),
        ("1m 30s", 90),
        ("0.5h", 1800),
        ("45", 45),
        (2.5, 2.5),
    ],
)
def test_time_spans_are_read(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "five", "-3s", "0s", "5 minutes", "3m2h", "nan", "1e3s"])
def test_invalid_time_spans_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a valid duration"):
        parse_duration(text)


def test_a_status_may_set_the_amount_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    progress = Progress("auto", quiet=True, compact=True)
    progress.start(total=60.0, count=0)
    clock[0] = 20.0
    progress.status("first model", done=20.0)
    assert progress.time_left() == "40 s"
