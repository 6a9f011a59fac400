"""docs/_ext/c_header.py: the reference of the C interface, from the header."""

import re

import c_header
import pytest
from sphinx.errors import ExtensionError

from site_pages import Page

pytestmark = pytest.mark.site
HEADER = c_header.HEADER.read_text(encoding="utf-8")


def test_every_name_of_the_header_has_an_anchor(pages: dict[str, Page]) -> None:
    functions = set(re.findall(r"^TF_LSTM_OPS_API [\w\s*]+?\b(tf_lstm_ops_\w+)\(", HEADER, re.M))
    structs = set(re.findall(r"^typedef struct (\w+)", HEADER, re.M))
    codes = set(re.findall(r"\b(TF_LSTM_OPS_\w+) = ", HEADER))
    assert "tf_lstm_ops_stream_run" in functions and len(functions) > 20
    assert len(structs) == 8 and len(codes) == 23
    constants = {"TF_LSTM_OPS_API_VERSION", "TF_LSTM_OPS_MAX_RANK"}
    anchors = {f"c.{name}" for name in functions | structs | codes | constants}
    assert anchors - pages["api/c.html"].ids == set()


def test_every_function_and_struct_is_described() -> None:
    _, found = c_header.entries(HEADER)
    wanted = [entry for entry in found if entry.kind != "enumerator"]
    assert len(wanted) > 20
    assert [entry.names for entry in wanted if not entry.comment] == []


def test_text_of_an_entry() -> None:
    header = """/* About. */
/* Computes `n` steps of *x, as tf_lstm_ops_b().
 *
 * Errors: LOST, a step.
 */
TF_LSTM_OPS_API int32_t tf_lstm_ops_a(
    const float* x, tf_lstm_ops_c* c);
TF_LSTM_OPS_API int32_t tf_lstm_ops_b(void);

typedef struct tf_lstm_ops_c {
  int32_t first; /* the number */
  /* Since version 2. */
  float second[8];
} tf_lstm_ops_c;

enum { TF_LSTM_OPS_LOST = 3 };
"""
    text = c_header.markdown(header)
    assert "`int32_t tf_lstm_ops_a(const float* x, tf_lstm_ops_c* c)\n" in text.replace(
        ":: int32_t", "`int32_t"
    )
    assert "Computes ``n`` steps of \\*x, as :c:func:`tf_lstm_ops_b`." in text
    assert "**Errors:** :c:enumerator:`LOST <TF_LSTM_OPS_LOST>`, a step." in text
    assert "   .. c:member:: int32_t first\n\n      the number\n" in text
    assert "   .. c:member:: float second[8]\n\n      Since version 2.\n" in text
    assert ".. c:enumerator:: TF_LSTM_OPS_LOST = 3" in text


def test_a_declaration_that_cannot_be_read_is_an_error() -> None:
    header = "/* About. */\nextern int32_t tf_lstm_ops_a(void);\n"
    with pytest.raises(ExtensionError, match="cannot read tf_lstm_ops_a"):
        c_header.entries(header)
