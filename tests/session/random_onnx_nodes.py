"""Nodes of random ONNX models, each behind a value of the model."""

from collections.abc import Callable
from typing import Any

import numpy as np

from session.onnx_sources import node

# An axis: a number, or the name of a size that the model leaves open.
Size = int | str
Shape = tuple[Size, ...]
Named = tuple[str, Shape]

ACTIVATIONS = [
    *("Relu", "Tanh", "Sigmoid", "Softsign", "Elu", "LeakyRelu", "HardSigmoid", "Neg", "Identity"),
    *("Dropout", "Softplus", "Selu"),
]
INT_MAX = 2**63 - 1


class Builder:
    """The nodes and values of a model that is being made.

    Args:
      rng: makes it.
      sizes: those of open axes, by name.
    """

    def __init__(self, rng: np.random.Generator, sizes: dict[str, int]) -> None:
        self.rng, self.sizes = rng, sizes
        self.nodes, self.arrays = list[Any](), dict[str, Any]()
        self.values: list[Named] = []
        self.opset = self.one_of([13, 13, 14, 17])

    def one_of(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def happens(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def some_of(self, choices: list[Any], most: int) -> list[Any]:
        count = min(len(choices), int(self.rng.integers(1, most + 1)))
        return [choices[k] for k in sorted(self.rng.choice(len(choices), count, replace=False))]

    def random(self, *shape: int) -> Any:
        return self.rng.uniform(0.5, 1.5, shape) * self.rng.choice([-0.7, 0.7], shape)

    def constant(self, value: Any) -> str:
        name = f"k{len(self.arrays)}"
        self.arrays[name] = value
        return name

    def add(self, op: str, inputs: str, shape: Shape, before: str = "", **attributes: Any) -> Named:
        """A node. Its output that counts is behind those of `before`."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(node(op, inputs, f"{before} {name}".strip(), **attributes))
        self.values.append((name, shape))
        return name, shape

    def size(self, size: Size) -> int:
        return size if isinstance(size, int) else self.sizes[size]

    def new_size(self, old: Size, size: int) -> Size:
        """Of an axis that was `old`: known or open as this."""
        if isinstance(old, int):
            return size
        name = f"S{len(self.sizes)}"
        self.sizes[name] = size
        return name


def activation(build: Builder, x: str, shape: Shape) -> Named:
    return build.add(build.one_of(ACTIVATIONS), x, shape)


def clip(build: Builder, x: str, shape: Shape) -> Named:
    low, high = (np.float32(each) for each in sorted(build.rng.uniform(-1, 1, 2)))
    names = [build.constant(each) if build.happens(0.7) else "-" for each in (low, high)]
    return build.add("Clip", " ".join([x, *names]), shape)


def softmax(build: Builder, x: str, shape: Shape) -> Named:
    axis = int(build.rng.integers(-len(shape), len(shape)))
    return build.add(build.one_of(["Softmax", "LogSoftmax"]), x, shape, axis=axis)


def with_constant(build: Builder, x: str, shape: Shape) -> Named:
    sizes = [each if isinstance(each, int) and build.happens(0.5) else 1 for each in shape]
    sizes = sizes[int(build.rng.integers(len(sizes) + 1)) :]
    name = build.constant(build.random(*sizes))
    op = build.one_of(["Add", "Sub", "Mul", "Div", "PRelu"])
    if op in ("Add", "Sub", "Mul") and build.happens(0.4):
        return build.add(op, f"{name} {x}", shape)
    return build.add(op, f"{x} {name}", shape)


def two_arrays(build: Builder, x: str, shape: Shape) -> Named | None:
    def result(other: Shape) -> Shape | None:
        rank = max(len(shape), len(other))
        a, b = ((1,) * (rank - len(each)) + each for each in (shape, other))
        pairs = [*zip(a, b, strict=True)]
        fits = all(m == n or 1 in (m, n) for m, n in pairs)
        return tuple(n if m == 1 else m for m, n in pairs) if fits else None

    fitting = [(name, result(other)) for name, other in build.values if result(other)]
    u, new = build.one_of(fitting)
    op = build.one_of(["Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum"])
    names = [x, u] if build.happens(0.5) else [u, x]
    if op not in ("Add", "Sub", "Mul") and build.happens(0.3):
        names.append(build.one_of([x, u]))
    return build.add(op, " ".join(names), new)


def matrix(build: Builder, x: str, shape: Shape) -> Named | None:
    if len(shape) < 2 or not isinstance(shape[-1], int):
        return None
    units = build.one_of([1, 3, 4])
    name = build.constant(build.random(shape[-1], units))
    if len(shape) == 2 and build.happens(0.6):
        bias = build.constant(build.random(*build.one_of([(units,), (1,), ()])))
        return build.add("Gemm", f"{x} {name} {bias}", (shape[0], units), alpha=0.5)
    return build.add("MatMul", f"{x} {name}", (*shape[:-1], units))


def transpose(build: Builder, x: str, shape: Shape) -> Named:
    perm = [int(k) for k in build.rng.permutation(len(shape))]
    return build.add("Transpose", x, tuple(shape[k] for k in perm), perm=perm)


def unsqueeze(build: Builder, x: str, shape: Shape) -> Named | None:
    if len(shape) > 4:
        return None
    place = int(build.rng.integers(len(shape) + 1))
    axes = build.constant([place])
    return build.add("Unsqueeze", f"{x} {axes}", (*shape[:place], 1, *shape[place:]))


def squeeze(build: Builder, x: str, shape: Shape) -> Named | None:
    ones = [k for k, each in enumerate(shape) if each == 1]
    if not ones:
        return None
    place = build.one_of(ones)
    axes = build.constant([build.one_of([place, place - len(shape)])])
    return build.add("Squeeze", f"{x} {axes}", (*shape[:place], *shape[place + 1 :]))


def reshape(build: Builder, x: str, shape: Shape) -> Named | None:
    """Two axes become one, one becomes two, or all others than the first one do."""
    k = int(build.rng.integers(len(shape)))
    way = build.rng.integers(4)
    if way == 0 and k + 1 < len(shape):
        a, b = shape[k : k + 2]
        both = build.size(a) * build.size(b)
        joined = both if isinstance(a, int) and isinstance(b, int) else f"S{len(build.sizes)}"
        build.sizes |= {} if isinstance(joined, int) else {joined: both}
        new = (*shape[:k], joined, *shape[k + 2 :])
    elif way == 1 and isinstance(shape[k], int) and shape[k] in (4, 6, 8, 12):
        part = build.one_of([2, int(shape[k]) // 2])
        new = (*shape[:k], part, int(shape[k]) // part, *shape[k + 1 :])
    elif way == 2 and all(isinstance(each, int) for each in shape[1:]) and len(shape) > 2:
        new = (shape[0], int(np.prod(shape[1:])))
        if build.happens(0.5):
            return build.add("Flatten", x, new)
    elif way == 3 and len(shape) == 3 and all(isinstance(each, int) for each in shape[1:]):
        new = (shape[0], shape[2], shape[1])
    else:
        return None
    if len(new) > 5:
        return None
    target = [0 if n < len(shape) and shape[n] == each else each for n, each in enumerate(new)]
    opened = [n for n, each in enumerate(target) if isinstance(each, str)]
    if len(opened) > 1:
        return None
    if opened or build.happens(0.3):
        target[opened[0] if opened else int(build.rng.integers(len(new)))] = -1
    return build.add("Reshape", f"{x} {build.constant(target)}", new)


def reshape_by_sizes(build: Builder, x: str, shape: Shape) -> Named | None:
    """Rows and steps in one axis, a product, and back by the sizes of the array."""
    if len(shape) != 3 or not isinstance(shape[2], int):
        return None
    both = build.size(shape[0]) * build.size(shape[1])
    build.sizes[f"S{len(build.sizes)}"] = both
    flat = build.constant([-1, shape[2]])
    first = build.add("Reshape", f"{x} {flat}", (f"S{len(build.sizes) - 1}", shape[2]))
    product = matrix(build, *first)
    assert product is not None
    sizes = build.add("Shape", x, (3,))[0]
    build.values.pop()
    parts = build.constant([0, 1])
    build.nodes.append(node("Gather", f"{sizes} {parts}", f"{sizes}_two"))
    last = build.constant([product[1][1]])
    build.nodes.append(node("Concat", f"{sizes}_two {last}", f"{sizes}_target", axis=0))
    return build.add("Reshape", f"{product[0]} {sizes}_target", (*shape[:2], product[1][1]))


def slices(build: Builder, x: str, shape: Shape) -> Named:
    axis = int(build.rng.integers(len(shape)))
    size = build.size(shape[axis])
    start, end = sorted(int(k) for k in build.rng.integers(0, size + 1, 2))
    count, step = end - start, 1
    if count == 0:
        start, end, step, count = -1, -INT_MAX, -1, size
    bounds = [start, build.one_of([INT_MAX, 2**31 - 1]) if step == 1 and end == size else end]
    if shape[axis] == "B":
        new: Size = shape[axis]
    else:
        new = shape[axis] if count == size else build.new_size(shape[axis], count)
    if step == 1 and start and isinstance(shape[axis], int) and build.happens(0.4):
        bounds[0] = start - size
    names = " ".join(build.constant([each]) for each in (*bounds, axis, step))
    return build.add("Slice", f"{x} {names}", (*shape[:axis], new, *shape[axis + 1 :]))


def split(build: Builder, x: str, shape: Shape) -> Named | None:
    places = [k for k, each in enumerate(shape) if isinstance(each, int) and each > 1]
    if not places:
        return None
    axis = build.one_of(places)
    first = int(build.rng.integers(1, shape[axis]))
    parts, rest = build.constant([first, int(shape[axis]) - first]), int(shape[axis]) - first
    new = (*shape[:axis], rest, *shape[axis + 1 :])
    return build.add("Split", f"{x} {parts}", new, before=f"w{len(build.nodes)}", axis=axis)


def gather(build: Builder, x: str, shape: Shape) -> Named | None:
    axis = int(build.rng.integers(len(shape)))
    if len(shape) < 2 or shape[axis] == "B":
        return None
    at = int(build.rng.integers(-1, build.size(shape[axis])))
    keeps = build.happens(0.3)
    name = build.constant([at] if keeps else np.int64(at))
    new = (*shape[:axis], *([1] if keeps else []), *shape[axis + 1 :])
    return build.add("Gather", f"{x} {name}", new, axis=axis)


def concat(build: Builder, x: str, shape: Shape) -> Named | None:
    axis = int(build.rng.integers(len(shape)))
    fitting = [
        (name, other)
        for name, other in build.values
        if len(other) == len(shape)
        and all(k == axis or a == b for k, (a, b) in enumerate(zip(shape, other, strict=True)))
    ]
    parts = [(x, shape), *(build.one_of(fitting) for _ in range(build.one_of([1, 1, 2])))]
    build.rng.shuffle(parts)  # type: ignore[arg-type]
    along = [each[1][axis] for each in parts]
    size = sum(map(build.size, along))
    opened = next((each for each in along if isinstance(each, str)), 0)
    new = (*shape[:axis], build.new_size(opened, size), *shape[axis + 1 :])
    axis = build.one_of([axis, axis - len(shape)])
    return build.add("Concat", " ".join(name for name, _ in parts), new, axis=axis)


def pad(build: Builder, x: str, shape: Shape) -> Named:
    axis, pads = int(build.rng.integers(len(shape))), [0] * (2 * len(shape))
    mode = "reflect" if build.size(shape[axis]) > 2 and build.happens(0.4) else "constant"
    pads[axis], pads[axis + len(shape)] = (int(k) for k in build.rng.integers(0, 3, 2))
    count = pads[axis] + pads[axis + len(shape)]
    new = build.new_size(shape[axis], build.size(shape[axis]) + count) if count else shape[axis]
    names = f"{x} {build.constant(pads)}"
    return build.add("Pad", names, (*shape[:axis], new, *shape[axis + 1 :]), mode=mode)


def reduction(build: Builder, x: str, shape: Shape) -> Named | None:
    axis, keeps = int(build.rng.integers(len(shape))), int(build.happens(0.5))
    if len(shape) < 2 or shape[axis] == "B":
        return None
    new = (*shape[:axis], *([1] * keeps), *shape[axis + 1 :])
    op = build.one_of(["ReduceMean", "ReduceMax", "ReduceSum"])
    if op == "ReduceSum":
        return build.add(op, f"{x} {build.constant([axis])}", new, keepdims=keeps)
    return build.add(op, x, new, axes_=[axis], keepdims=keeps)


def windows(build: Builder, x: str, shape: Shape) -> Named | None:
    """A convolution or pooling along the last axis."""
    if len(shape) not in (3, 4) or not isinstance(shape[1], int):
        return None
    if len(shape) == 4 and shape[2] != 1:
        return None
    k, stride, dilation = build.one_of([1, 2, 3]), build.one_of([1, 1, 2]), build.one_of([1, 1, 2])
    pads, size = [int(n) for n in build.rng.integers(0, 3, 2)], build.size(shape[-1])
    op = build.one_of(["Conv", "Conv", "MaxPool", "AveragePool"])
    pads, dilation = (pads, dilation) if op == "Conv" else ([0, 0], 1)
    count = (size + sum(pads) - (k - 1) * dilation - 1) // stride + 1
    if count < 1:
        return None
    ones = [1] * (len(shape) - 3)
    options: dict[str, Any] = {"strides": [*ones, stride]}
    zeros = [0] * (len(shape) - 3)
    options["pads"] = [*zeros, pads[0], *zeros, pads[1]]
    new = shape[-1] if count == size else build.new_size(shape[-1], count)
    if op != "Conv":
        return build.add(op, x, (*shape[:-1], new), kernel_shape=[*ones, k], **options)
    groups = build.one_of([1, 1, shape[1]])
    units = groups * build.one_of([1, 2])
    kernel = build.constant(build.random(units, shape[1] // groups, *ones, k))
    options |= {"dilations": [*ones, dilation], "group": groups}
    return build.add("Conv", f"{x} {kernel}", (shape[0], units, *shape[2:-1], new), **options)


def global_pool(build: Builder, x: str, shape: Shape) -> Named | None:
    if len(shape) < 3:
        return None
    new = (*shape[:2], *([1] * (len(shape) - 2)))
    return build.add(build.one_of(["GlobalMaxPool", "GlobalAveragePool"]), x, new)


def normalization(build: Builder, x: str, shape: Shape) -> Named | None:
    if build.happens(0.5) and len(shape) > 1 and isinstance(shape[1], int):
        scale, offset, mean = (build.constant(build.random(shape[1])) for _ in range(3))
        variance = build.constant(np.abs(build.random(shape[1])))
        names = f"{x} {scale} {offset} {mean} {variance}"
        return build.add("BatchNormalization", names, shape)
    if build.opset < 17 or not isinstance(shape[-1], int):
        return None
    name = build.constant(build.random(shape[-1]))
    return build.add("LayerNormalization", f"{x} {name} {name}", shape, epsilon=0.1)


def recurrent(build: Builder, x: str, shape: Shape) -> Named | None:
    if len(shape) != 3 or not isinstance(shape[2], int):
        return None
    op, units = build.one_of(["LSTM", "GRU", "RNN"]), build.one_of([2, 4])
    direction = build.one_of(["forward", "reverse", "bidirectional"])
    count, gates = 1 + (direction == "bidirectional"), {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    w = build.constant(build.random(count, gates * units, shape[2]))
    r = build.constant(0.5 * build.random(count, gates * units, units))
    options = {"hidden_size": units, "direction": direction}
    if op == "GRU":
        options["linear_before_reset"] = int(build.happens(0.5))
    if build.happens(0.3):
        final = (count, shape[1], units)
        return build.add(op, f"{x} {w} {r}", final, before=f"w{len(build.nodes)}", **options)
    return build.add(op, f"{x} {w} {r}", (shape[0], count, shape[1], units), **options)


MAKERS: list[Callable[[Builder, str, Shape], Named | None]] = [
    *(activation, activation, clip, softmax, with_constant, with_constant, two_arrays, two_arrays),
    *(matrix, matrix, transpose, transpose, unsqueeze, squeeze, reshape, reshape, reshape_by_sizes),
    *(slices, split, gather, concat, concat, pad, reduction, windows, windows, global_pool),
    *(normalization, recurrent, recurrent, recurrent),
]
