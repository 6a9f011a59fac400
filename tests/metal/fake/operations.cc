// The operations of Graph: checks of their inputs, and their values.
#include <algorithm>
#include <cmath>
#include <set>

#include "graph.h"
#include "misuse.h"

namespace fake {
namespace {

using Inputs = std::vector<const Array*>;

void RequireType(const char* name, const Tensor* a, Type type) {
  Require(a->type == type, name, ": takes ", ToString(type), " but got ",
          ToString(*a));
}

void RequireSameType(const char* name, const Tensor* a, const Tensor* b) {
  Require(a->type == b->type, name, ": types differ: ", ToString(*a), " and ",
          ToString(*b));
}

void RequireRank(const char* name, const Tensor* a, size_t rank) {
  Require(a->shape.size() == rank, name, ": takes rank ", rank, " but got ",
          ToString(*a));
}

// Counted from the end if negative.
size_t CheckedAxis(const char* name, const Tensor* a, int64_t axis) {
  const auto rank = static_cast<int64_t>(a->shape.size());
  Require(-rank <= axis && axis < rank, name, ": axis ", axis, " of ",
          ToString(*a));
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

Shape BroadcastShape(const char* name, const Tensor* a, const Tensor* b) {
  Shape shape(std::max(a->shape.size(), b->shape.size()), 1);
  for (const Tensor* tensor : {a, b}) {
    const size_t added = shape.size() - tensor->shape.size();
    for (size_t axis = 0; axis < tensor->shape.size(); ++axis) {
      const int64_t dim = tensor->shape[axis];
      int64_t& both = shape[added + axis];
      Require(both == 1 || dim == 1 || both == dim, name, ": ", ToString(*a),
              " and ", ToString(*b), " do not broadcast");
      both = std::max(both, dim);
    }
  }
  return shape;
}

// Copies `part` into `whole` or back. The first row of the part along the axis
// has the index `start` in `whole`.
enum class CopyDirection { kInto, kFrom };
template <class Whole, class Part>
void CopyRows(Whole& whole, Part& part, size_t axis, int64_t start,
              CopyDirection direction) {
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < axis; ++k) outer *= part.shape[k];
  for (size_t k = axis + 1; k < part.shape.size(); ++k) inner *= part.shape[k];
  const int64_t rows = part.shape[axis] * inner;
  for (int64_t n = 0; n < outer; ++n) {
    auto* w = &whole.values[(n * whole.shape[axis] + start) * inner];
    auto* p = &part.values[n * rows];
    if (direction == CopyDirection::kInto) {
      if constexpr (!std::is_const_v<Whole>) std::copy(p, p + rows, w);
    } else {
      if constexpr (!std::is_const_v<Part>) std::copy(w, w + rows, p);
    }
  }
}

// The sum of some rows along an axis, computed pairwise as on a GPU.
Array SumOfRows(const Array& a, const Shape& row_shape, size_t axis,
                int64_t first, int64_t count) {
  Array sum(a.type, row_shape);
  if (count == 1) {
    CopyRows(a, sum, axis, first, CopyDirection::kFrom);
    return sum;
  }
  const int64_t half = count / 2;
  sum = SumOfRows(a, row_shape, axis, first, half);
  const Array rest = SumOfRows(a, row_shape, axis, first + half, count - half);
  for (size_t n = 0; n < sum.values.size(); ++n) {
    sum.values[n] += rest.values[n];
  }
  return sum;
}

int64_t CheckedIndex(const char* name, float index, int64_t size) {
  Require(0 <= index && index < static_cast<float>(size), name, ": index ",
          index, " of ", size);
  return static_cast<int64_t>(index);
}

}  // namespace

// --- constants ------------------------------------------------

Tensor* Graph::Constant(double scalar, const Shape& shape, Type type) {
  return AddOne({}, {type, shape}, [=](const Inputs&) {
    Array array(type, shape);
    std::fill(array.values.begin(), array.values.end(),
              Round(type, static_cast<float>(scalar)));
    return std::vector<Array>{array};
  });
}

// --- elementwise ----------------------------------------------------

template <class Function>
Tensor* Graph::Unary(const char* name, Tensor* a, Function function) {
  RequireUsable(a);
  RequireType(name, a, Type::kFloat32);
  return AddOne({a}, {a->type, a->shape}, [=](const Inputs& inputs) {
    Array array = *inputs[0];
    for (float& value : array.values) value = function(value);
    return std::vector<Array>{array};
  });
}

template <class Function>
Tensor* Graph::Binary(const char* name, Tensor* a, Tensor* b, bool compares,
                      Function function) {
  RequireUsable(a);
  RequireUsable(b);
  RequireSameType(name, a, b);
  if (a->type != Type::kInt32) RequireType(name, a, Type::kFloat32);
  const Shape shape = BroadcastShape(name, a, b);
  const Type type = compares ? Type::kBool : a->type;
  return AddOne({a, b}, {type, shape}, [=](const Inputs& inputs) {
    const Array left = Broadcast(*inputs[0], shape);
    const Array right = Broadcast(*inputs[1], shape);
    Array array(type, shape);
    for (size_t k = 0; k < array.values.size(); ++k) {
      array.values[k] = function(left.values[k], right.values[k]);
    }
    return std::vector<Array>{array};
  });
}

Tensor* Graph::Identity(Tensor* a) {
  RequireUsable(a);
  return AddOne({a}, {a->type, a->shape}, [](const Inputs& inputs) {
    return std::vector<Array>{*inputs[0]};
  });
}

Tensor* Graph::Cast(Tensor* a, Type type) {
  RequireUsable(a);
  return AddOne({a}, {type, a->shape}, [=](const Inputs& inputs) {
    Array array = *inputs[0];
    array.type = type;
    for (float& value : array.values) value = Round(type, value);
    return std::vector<Array>{array};
  });
}

Tensor* Graph::Sigmoid(Tensor* a) {
  return Unary("sigmoid", a, [](float v) { return 1 / (1 + std::exp(-v)); });
}

Tensor* Graph::Tanh(Tensor* a) {
  return Unary("tanh", a, [](float v) { return std::tanh(v); });
}

Tensor* Graph::Add(Tensor* a, Tensor* b) {
  return Binary("addition", a, b, /*compares=*/false,
                [](float v, float w) { return v + w; });
}

Tensor* Graph::Subtract(Tensor* a, Tensor* b) {
  return Binary("subtraction", a, b, /*compares=*/false,
                [](float v, float w) { return v - w; });
}

Tensor* Graph::Multiply(Tensor* a, Tensor* b) {
  return Binary("multiplication", a, b, /*compares=*/false,
                [](float v, float w) { return v * w; });
}

Tensor* Graph::Less(Tensor* a, Tensor* b) {
  return Binary("lessThan", a, b, /*compares=*/true,
                [](float v, float w) { return v < w; });
}

Tensor* Graph::Select(Tensor* predicate, Tensor* a, Tensor* b) {
  for (const Tensor* tensor : {predicate, a, b}) RequireUsable(tensor);
  RequireType("select", predicate, Type::kBool);
  RequireSameType("select", a, b);
  Require(predicate->shape == a->shape && a->shape == b->shape,
          "select: shapes differ: ", ToString(*predicate), ", ", ToString(*a),
          " and ", ToString(*b));
  return AddOne({predicate, a, b}, {a->type, a->shape}, [](const Inputs& in) {
    Array array = *in[1];
    for (size_t k = 0; k < array.values.size(); ++k) {
      if (in[0]->values[k] == 0) array.values[k] = in[2]->values[k];
    }
    return std::vector<Array>{array};
  });
}

// --- sums ------------------------------------------------------------------

Tensor* Graph::MatMul(Tensor* a, Tensor* b) {
  const char* name = "matrixMultiplication";
  for (const Tensor* tensor : {a, b}) {
    RequireUsable(tensor);
    RequireType(name, tensor, Type::kFloat32);
    RequireRank(name, tensor, 2);
  }
  Require(a->shape[1] == b->shape[0], name, ": ", ToString(*a), " times ",
          ToString(*b));
  return AddOne(
      {a, b}, {a->type, {a->shape[0], b->shape[1]}}, [](const Inputs& inputs) {
        return std::vector<Array>{MatrixProduct(*inputs[0], *inputs[1])};
      });
}

Tensor* Graph::Sum(Tensor* a, int64_t axis) {
  const char* name = "reductionSum";
  RequireUsable(a);
  RequireType(name, a, Type::kFloat32);
  const size_t along = CheckedAxis(name, a, axis);
  Shape shape = a->shape;
  shape[along] = 1;
  return AddOne({a}, {a->type, shape}, [=](const Inputs& inputs) {
    return std::vector<Array>{
        SumOfRows(*inputs[0], shape, along, 0, inputs[0]->shape[along])};
  });
}

// --- moving values ---------------------------------------------------------

Tensor* Graph::View(Tensor* a, const Shape& shape, int64_t offset,
                    const std::vector<int64_t>& strides) {
  return AddOne(
      {a}, {a->type, shape},
      [=](const Inputs& inputs) {
        return std::vector<Array>{Strided(*inputs[0], shape, offset, strides)};
      },
      /*is_view=*/true);
}

Tensor* Graph::Reshape(Tensor* a, const Shape& shape) {
  RequireUsable(a);
  Require(SizeOf(shape) == SizeOf(a->shape), "reshape: ", ToString(*a), " to ",
          ToString(shape));
  return View(a, shape, 0, StridesOf(shape));
}

Tensor* Graph::Transpose(Tensor* a, int64_t axis, int64_t other) {
  RequireUsable(a);
  std::vector<int64_t> strides = StridesOf(a->shape);
  Shape shape = a->shape;
  const size_t first = CheckedAxis("transpose", a, axis);
  const size_t second = CheckedAxis("transpose", a, other);
  std::swap(strides[first], strides[second]);
  std::swap(shape[first], shape[second]);
  return View(a, shape, 0, strides);
}

Tensor* Graph::Slice(Tensor* a, int64_t axis, int64_t start, int64_t length) {
  RequireUsable(a);
  const size_t along = CheckedAxis("slice", a, axis);
  const int64_t size = a->shape[along];
  Require(0 <= start && 0 < length && start + length <= size,
          "slice: ", ToString(*a), ", start ", start, ", length ", length,
          " along axis ", axis);
  const std::vector<int64_t> strides = StridesOf(a->shape);
  Shape shape = a->shape;
  shape[along] = length;
  return View(a, shape, start * strides[along], strides);
}

Tensor* Graph::BroadcastTo(Tensor* a, const Shape& shape) {
  RequireUsable(a);
  const Tensor target{this, current_, nullptr, a->type, shape, false};
  Require(BroadcastShape("broadcast", a, &target) == shape,
          "broadcast: ", ToString(*a), " to ", ToString(shape));
  return AddOne(
      {a}, {a->type, shape},
      [=](const Inputs& inputs) {
        return std::vector<Array>{Broadcast(*inputs[0], shape)};
      },
      /*is_view=*/true);
}

Tensor* Graph::Reverse(Tensor* a, const std::vector<int64_t>& axes) {
  RequireUsable(a);
  std::vector<int64_t> strides = StridesOf(a->shape);
  int64_t offset = 0;
  std::set<size_t> reversed;
  for (int64_t axis : axes) {
    const size_t along = CheckedAxis("reverse", a, axis);
    Require(reversed.insert(along).second, "reverse: axis ", axis, " twice");
    offset += strides[along] * (a->shape[along] - 1);
    strides[along] = -strides[along];
  }
  return View(a, a->shape, offset, strides);
}

Tensor* Graph::Concat(const Tensors& parts, int64_t axis) {
  Require(!parts.empty(), "concat: no tensors");
  for (const Tensor* part : parts) RequireUsable(part);
  const size_t along = CheckedAxis("concat", parts[0], axis);
  Shape shape = parts[0]->shape;
  shape[along] = 0;
  for (const Tensor* part : parts) {
    RequireSameType("concat", part, parts[0]);
    Shape expected = parts[0]->shape;
    RequireRank("concat", part, expected.size());
    expected[along] = part->shape[along];
    Require(part->shape == expected, "concat: ", ToString(*parts[0]), " and ",
            ToString(*part), " along axis ", axis);
    shape[along] += part->shape[along];
  }
  return AddOne(parts, {parts[0]->type, shape}, [=](const Inputs& inputs) {
    Array whole(inputs[0]->type, shape);
    int64_t start = 0;
    for (const Array* part : inputs) {
      CopyRows(whole, *part, along, start, CopyDirection::kInto);
      start += part->shape[along];
    }
    return std::vector<Array>{whole};
  });
}

Tensor* Graph::Gather(Tensor* a, Tensor* indices, int64_t axis,
                      int64_t batch_dimensions) {
  const char* name = "gather";
  RequireUsable(a);
  RequireUsable(indices);
  Require(batch_dimensions == 0, name, ": batchDimensions ", batch_dimensions,
          " is not emulated");
  RequireType(name, indices, Type::kInt32);
  RequireRank(name, indices, 1);
  const size_t along = CheckedAxis(name, a, axis);
  Shape shape = a->shape;
  shape[along] = indices->shape[0];
  return AddOne({a, indices}, {a->type, shape}, [=](const Inputs& inputs) {
    Shape row_shape = shape;
    row_shape[along] = 1;
    Array rows(inputs[0]->type, shape), row(inputs[0]->type, row_shape);
    for (int64_t k = 0; k < shape[along]; ++k) {
      const int64_t index =
          CheckedIndex(name, inputs[1]->values[k], inputs[0]->shape[along]);
      CopyRows(*inputs[0], row, along, index, CopyDirection::kFrom);
      CopyRows(rows, row, along, k, CopyDirection::kInto);
    }
    return std::vector<Array>{rows};
  });
}

Tensor* Graph::Scatter(Tensor* a, Tensor* updates, Tensor* indices,
                       int64_t axis) {
  const char* name = "scatter";
  for (const Tensor* tensor : {a, updates, indices}) RequireUsable(tensor);
  RequireSameType(name, a, updates);
  RequireType(name, indices, Type::kInt32);
  RequireRank(name, indices, 1);
  const size_t along = CheckedAxis(name, a, axis);
  Shape expected = a->shape;
  expected[along] = indices->shape[0];
  Require(updates->shape == expected, name, ": updates ", ToString(*updates),
          ", expected ", ToString(expected));
  return AddOne(
      {a, updates, indices}, {a->type, a->shape}, [=](const Inputs& inputs) {
        Shape row_shape = expected;
        row_shape[along] = 1;
        Array whole = *inputs[0], row(whole.type, row_shape);
        std::set<int64_t> written;
        for (int64_t k = 0; k < expected[along]; ++k) {
          const int64_t index =
              CheckedIndex(name, inputs[2]->values[k], whole.shape[along]);
          Require(written.insert(index).second, name, ": index ", index,
                  " twice");
          CopyRows(*inputs[1], row, along, k, CopyDirection::kFrom);
          CopyRows(whole, row, along, index, CopyDirection::kInto);
        }
        return std::vector<Array>{whole};
      });
}

}  // namespace fake
