"""Arrow data with wrong buffers raises an error and does not crash the process."""

import json
import textwrap

import pytest
from kit.interpreter import run_script

# Older versions refuse some of the wrong buffers themselves.
pytest.importorskip("pyarrow", minversion="20")

MAKE = """
    import io, json, struct, sys
    import pyarrow as pa
    import siteline

    buffers = pa.Array.from_buffers
    TIMES = pa.array([0, 3_600_000_000, 7_200_000_000], pa.timestamp("us", "UTC"))

    def pack(form, *numbers):
        return struct.pack("<" + form, *numbers)

    def view(length, index, offset):
        return struct.pack("<i4sii", length, b"abcd", index, offset)

    def text(kind):
        return lambda offsets: buffers(kind, 3, [None, offsets, pa.py_buffer(b"abc")])

    def coded(keys):
        keys, values = buffers(pa.int32(), 3, [None, keys]), pa.array(["a", "b"])
        return pa.DictionaryArray.from_arrays(keys, values, safe=False)

    def views(made):
        return buffers(pa.string_view(), 3, [None, made, pa.py_buffer(b"abcd" * 10)])

    def runs(ends):
        children = [buffers(pa.int32(), 3, [None, ends]), pa.array(["a", "b", "c"])]
        kind = pa.run_end_encoded(pa.int32(), pa.string())
        return pa.RunEndEncodedArray.from_buffers(kind, 3, [None], -1, 0, children)

    def lists(offsets):
        kind = pa.list_(pa.int64())
        return buffers(kind, 3, [None, offsets], children=[pa.array([1, 2, 3])])

    SMALL, LARGE = pack("4i", 0, 1, 2, 3), pack("4q", 0, 1, 2, 3)
    VIEW = view(20, 0, 0)
    CASES = [
        (text(pa.string()), SMALL, pack("4i", 0, 1, 2, 90_000_000)),
        (text(pa.string()), SMALL, pack("4i", 0, 10**9, 2, 3)),
        (text(pa.string()), SMALL, pack("4i", 0, -5, 2, 3)),
        (text(pa.string()), SMALL, pack("4i", 0, 1, 2, -3)),
        (text(pa.string()), SMALL, pack("4i", 0, 3, 1, 3)),
        (text(pa.binary()), SMALL, pack("4i", 0, 10**9, 2, 3)),
        (text(pa.large_string()), LARGE, pack("4q", 0, 2**50, 2, 3)),
        (text(pa.large_string()), LARGE, pack("4q", 0, 1, 2, -(2**60))),
        (lambda made: buffers(pa.string(), 3, [None, pa.py_buffer(SMALL), made]),
         b"xyz", b"\\xff\\xfe\\xfd"),
        (coded, pack("3i", 0, 1, 1), pack("3i", 0, 1, 99)),
        (coded, pack("3i", 0, 1, 1), pack("3i", 0, -7, 1)),
        (views, VIEW * 3, view(20, 7, 0) * 3),
        (views, VIEW * 3, view(20, 0, 10**9) * 3),
        (views, VIEW * 3, view(-20, 0, 0) * 3),
        (runs, pack("3i", 1, 2, 3), pack("3i", 2, 1, 3)),
        (runs, pack("3i", 1, 2, 3), pack("3i", -1, 2, 3)),
        (lists, SMALL, pack("4i", 0, 10**9, 2, 3)),
        (lists, SMALL, pack("4i", 0, 1, 2, 10**9)),
    ]

    def table(make, buffer, name):
        columns = {"timestamp": TIMES, "value": [1.0, 2.0, 3.0], name: make(buffer)}
        return pa.table(columns)

    def broken(case, name):
        '''The table with a buffer that changes after pyarrow has validated it.'''
        make, right, wrong = CASES[case]
        memory = bytearray(right)
        made = table(make, pa.py_buffer(memory), name)
        memory[:] = wrong
        return made

    def file(case, name):
        make, right, wrong = CASES[case]
        stream = io.BytesIO()
        made = table(make, pa.py_buffer(right), name)
        with pa.ipc.new_stream(stream, made.schema) as writer:
            writer.write_table(made)
        return stream.getvalue().replace(right, wrong)
"""

LOAD = """
    def pandas_frame(case, name):
        import pandas as pd

        return pa.ipc.open_stream(file(case, name)).read_all().to_pandas(
            types_mapper=pd.ArrowDtype
        )

    FORMS = {
        "table": broken,
        "batch": lambda case, name: broken(case, name).to_batches()[0],
        "reader": lambda case, name: broken(case, name).to_reader(),
        "file": lambda case, name: pa.ipc.open_stream(file(case, name)),
        "read file": lambda case, name: pa.ipc.open_stream(file(case, name)).read_all(),
        "pandas": pandas_frame,
    }
    # pandas has no view types and no run-end encoding of its own.
    WITH_PANDAS = 11

    def attempts():
        for form in FORMS:
            for case in range(WITH_PANDAS if form == "pandas" else len(CASES)):
                for name in ("site_id", "note"):
                    # Of a frame of pandas only the columns with a meaning are read.
                    if (form, name) != ("pandas", "note"):
                        yield form, case, name

    messages = []
    with siteline.Sandbox() as sandbox:
        for form, case, name in attempts():
            try:
                sandbox.load(FORMS[form](case, name), tag="T", bucket="1m")
            except siteline.errors.ConfigError as error:
                messages.append(str(error))
            else:
                raise SystemExit(f"{form} {case} {name} was loaded")
    print(json.dumps(messages))
"""

COMPARE = """
    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox, sandbox.client() as client:
        page = next(client.scan(
            site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z", interval="1h"
        ).pages())
        for case in range(len(CASES)):
            for made in (broken(case, "site_id"), pa.ipc.open_stream(file(case, "site_id"))):
                try:
                    page.diff(made)
                except siteline.errors.QueryError:
                    continue
                raise SystemExit(f"{case} was compared")
"""

UNPICKLE = """
    import pickle, random

    with siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox, sandbox.client() as client:
        whole = pickle.dumps(client.scan(
            site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z", interval="1h"
        ).collect())
    start, choose = whole.index(b"\\xff\\xff\\xff\\xff"), random.Random(39)
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[choose.randrange(start + 8, len(whole) - 1_500)] = choose.choice([0, 127, 128, 255])
        try:
            pickle.loads(damaged)
        except siteline.errors.InternalError as error:
            raise SystemExit(str(error))
        except Exception:
            pass
"""


def run(script):
    return run_script(textwrap.dedent(MAKE) + textwrap.dedent(script), timeout=300)


def test_frames_with_wrong_buffers_are_refused():
    pytest.importorskip("pandas")
    told = json.loads(run(LOAD))
    assert len(told) > 180
    assert all("broken" in text or "holds" in text for text in told), told


def test_stored_tables_and_pickles_with_wrong_buffers_are_refused():
    run(COMPARE + UNPICKLE)
