#include "array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>

#include "misuse.h"

namespace fake {
namespace {

// The types in memory, which convert from and to float as static_cast does.
struct BFloat16 {
  uint16_t bits;

  explicit BFloat16(float value) {  // rounds to the nearest, ties to even
    uint32_t all;
    std::memcpy(&all, &value, sizeof all);
    const uint32_t half = 0x7FFF + (all >> 16 & 1);
    bits = static_cast<uint16_t>((std::isnan(value) ? all | 1 << 22 : all + half) >> 16);
  }
  operator float() const {
    const uint32_t all = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &all, sizeof value);
    return value;
  }
};

// Calls a function with a value of the type in memory.
template <class Function>
auto OfType(Type type, Function function) {
  switch (type) {
    case Type::kFloat32:
      return function(0.0F);
    case Type::kFloat16:
      return function(_Float16{0});
    case Type::kBFloat16:
      return function(BFloat16(0));
    case Type::kInt32:
      return function(int32_t{0});
    case Type::kBool:
      Raise("Bool is not emulated in memory");
  }
}

const std::map<Type, const char*> kNames = {{Type::kFloat32, "Float32"},
                                            {Type::kFloat16, "Float16"},
                                            {Type::kBFloat16, "BFloat16"},
                                            {Type::kInt32, "Int32"},
                                            {Type::kBool, "Bool"}};

}  // namespace

Type CheckedType(uint32_t type) {
  Require(kNames.count(Type{type}) != 0, "MPSDataType ", type, " is not emulated");
  return Type{type};
}

std::string ToString(Type type) { return kNames.at(type); }

int64_t BytesOf(Type type) { return (static_cast<uint32_t>(type) & 0xFF) / 8; }

float Round(Type type, float value) {
  return OfType(type, [=](auto t) { return static_cast<float>(static_cast<decltype(t)>(value)); });
}

Array FromMemory(Type type, const Shape& shape, const void* memory) {
  Array array(type, shape);
  OfType(type, [&](auto t) {
    const auto* from = static_cast<const decltype(t)*>(memory);
    for (float& value : array.values) value = static_cast<float>(*from++);
  });
  return array;
}

void ToMemory(const Array& array, void* memory) {
  OfType(array.type, [&](auto t) {
    auto* to = static_cast<decltype(t)*>(memory);
    for (float value : array.values) *to++ = static_cast<decltype(t)>(value);
  });
}

int64_t SizeOf(const Shape& shape) {
  int64_t size = 1;
  for (int64_t dim : shape) size *= dim;
  return size;
}

std::string ToString(const Shape& shape) {
  std::ostringstream text;
  const char* separator = "";
  for (int64_t dim : shape) {
    text << separator << dim;
    separator = ",";
  }
  return "[" + text.str() + "]";
}

std::vector<int64_t> StridesOf(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    strides[axis] = stride;
  }
  return strides;
}

Array Strided(const Array& from, const Shape& shape, int64_t offset,
              const std::vector<int64_t>& strides) {
  Array to(from.type, shape);
  if (to.values.empty()) return to;
  std::vector<int64_t> index(shape.size());
  int64_t at = offset;
  for (float& value : to.values) {
    value = from.values[at];
    for (size_t axis = shape.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < shape[axis]) break;
      at -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return to;
}

Array Broadcast(const Array& from, const Shape& shape) {
  if (from.shape == shape) return from;
  const std::vector<int64_t> own = StridesOf(from.shape);
  std::vector<int64_t> strides(shape.size());
  const size_t added = shape.size() - from.shape.size();
  for (size_t axis = 0; axis < own.size(); ++axis) {
    strides[added + axis] = from.shape[axis] == 1 ? 0 : own[axis];
  }
  return Strided(from, shape, 0, strides);
}

// Adds partial sums of 32 terms, as a GPU does.
Array MatrixProduct(const Array& a, const Array& b) {
  constexpr int64_t kTermsAtOnce = 32;
  const int64_t rows = a.shape[0], inner = a.shape[1], columns = b.shape[1];
  Array product(a.type, {rows, columns});
  std::vector<float> part(columns);
  for (int64_t row = 0; row < rows; ++row) {
    float* sums = product.values.data() + row * columns;
    for (int64_t first = 0; first < inner; first += kTermsAtOnce) {
      std::fill(part.begin(), part.end(), 0.0F);
      const int64_t end = std::min(first + kTermsAtOnce, inner);
      for (int64_t k = first; k < end; ++k) {
        const float factor = a.values[row * inner + k];
        const float* terms = b.values.data() + k * columns;
        for (int64_t j = 0; j < columns; ++j) part[j] += factor * terms[j];
      }
      for (int64_t j = 0; j < columns; ++j) sums[j] += part[j];
    }
  }
  return product;
}

Array Transposed(const Array& a) {
  return Strided(a, {a.shape[1], a.shape[0]}, 0, {1, a.shape[1]});
}

Array Slice(const Array& a, size_t axis, int64_t start, int64_t length) {
  const std::vector<int64_t> strides = StridesOf(a.shape);
  Shape shape = a.shape;
  shape[axis] = length;
  return Strided(a, shape, start * strides[axis], strides);
}

Array Reshaped(Array a, const Shape& shape) {
  a.shape = shape;
  return a;
}

std::vector<const Array*> PointersTo(const std::vector<Array>& arrays) {
  std::vector<const Array*> pointers;
  for (const Array& array : arrays) pointers.push_back(&array);
  return pointers;
}

Array Concat(const std::vector<const Array*>& parts, size_t axis) {
  Shape shape = parts[0]->shape;
  const int64_t outer = SizeOf({shape.begin(), shape.begin() + axis});
  shape[axis] = 0;
  for (const Array* part : parts) shape[axis] += part->shape[axis];
  Array whole(parts[0]->type, shape);
  auto to = whole.values.begin();
  for (int64_t n = 0; n < outer; ++n) {
    for (const Array* part : parts) {
      const int64_t count = SizeOf(part->shape) / outer;
      to = std::copy_n(part->values.begin() + n * count, count, to);
    }
  }
  return whole;
}

Array Sum(const Array& a, size_t axis) {
  const int64_t rows = a.shape[axis], half = rows / 2;
  if (rows == 1) return a;
  return Map(Sum(Slice(a, axis, 0, half), axis), Sum(Slice(a, axis, half, rows - half), axis),
             std::plus<float>());
}

}  // namespace fake
