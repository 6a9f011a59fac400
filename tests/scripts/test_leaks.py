"""Which leaks of a report are the library's."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "leaks.py"
REPORT = """
=================================================================
==7==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 40 byte(s) in 1 object(s) allocated from:
    #0 0x7f00 in operator new(unsigned long) (/usr/lib/libasan.so.8+0xb94)
    #1 0x7f01 in tf_lstm_ops::Cell::Cell() {symbol} ({library}+0x100)
    #2 0x7f02 in tensorflow::OpKernel (/lib/libtensorflow_framework.so.2+0x99)

Direct leak of 8 byte(s) in 1 object(s) allocated from:
    #0 0x7f00 in malloc (/usr/lib/libasan.so.8+0xb94)
    #1 0x7f02 in tensorflow::Arena (/lib/libtensorflow_framework.so.2+0x99)
    #2 0x7f03 in tf_lstm_ops::Cell::Cell() ({library}+0x100)

SUMMARY: AddressSanitizer: 48 byte(s) leaked in 2 allocation(s).
"""


@pytest.mark.parametrize("symbol", ["cc/core/cell.cc:7", ""])
@pytest.mark.parametrize("library", ["/x/tf_lstm_ops.so", "/x/y.so"])
def test_a_leak_is_ours_where_our_code_asked_for_it(symbol, library):
    script = runpy.run_path(str(SCRIPT))
    found = script["leaks"](REPORT.format(symbol=symbol, library=library))
    is_known = bool(symbol) or library.endswith("/tf_lstm_ops.so")
    assert [leak.split()[3] for leak in found] == ["40"] * is_known
