#include "array.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "misuse.h"

namespace fake {
namespace {

// Rounds to the nearest, ties to even.
uint16_t BFloat16Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float FromBFloat16Bits(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T, class Convert>
void Load(const void* memory, std::vector<float>* values, Convert convert) {
  const T* from = static_cast<const T*>(memory);
  for (float& value : *values) value = convert(*from++);
}

template <class T, class Convert>
void Save(const std::vector<float>& values, void* memory, Convert convert) {
  T* to = static_cast<T*>(memory);
  for (float value : values) *to++ = convert(value);
}

float FromInt32(int32_t value) {
  Require(std::abs(value) < 1 << 24, "Int32 ", value,
          ": integers are stored as float");
  return static_cast<float>(value);
}

}  // namespace

Type CheckedType(uint32_t type) {
  for (Type known : {Type::kFloat32, Type::kFloat16, Type::kBFloat16,
                     Type::kInt32, Type::kBool}) {
    if (static_cast<uint32_t>(known) == type) return known;
  }
  Raise("MPSDataType " + std::to_string(type) + " is not emulated");
}

int64_t BytesOf(Type type) { return (static_cast<uint32_t>(type) & 0xFF) / 8; }

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

std::string ToString(Type type) {
  switch (type) {
    case Type::kFloat32:
      return "Float32";
    case Type::kFloat16:
      return "Float16";
    case Type::kBFloat16:
      return "BFloat16";
    case Type::kInt32:
      return "Int32";
    case Type::kBool:
      return "Bool";
  }
}

std::vector<int64_t> StridesOf(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    strides[axis] = stride;
  }
  return strides;
}

float Round(Type type, float value) {
  switch (type) {
    case Type::kFloat32:
      return value;
    case Type::kFloat16:
      return static_cast<float>(static_cast<_Float16>(value));
    case Type::kBFloat16:
      return FromBFloat16Bits(BFloat16Bits(value));
    case Type::kInt32:
      return std::trunc(value);
    case Type::kBool:
      return value != 0;
  }
}

Array FromMemory(Type type, const Shape& shape, const void* memory) {
  Array array(type, shape);
  const auto same = [](auto value) { return static_cast<float>(value); };
  switch (type) {
    case Type::kFloat32:
      Load<float>(memory, &array.values, same);
      break;
    case Type::kFloat16:
      Load<_Float16>(memory, &array.values, same);
      break;
    case Type::kBFloat16:
      Load<uint16_t>(memory, &array.values, FromBFloat16Bits);
      break;
    case Type::kInt32:
      Load<int32_t>(memory, &array.values, FromInt32);
      break;
    case Type::kBool:
      Load<uint8_t>(memory, &array.values,
                    [](uint8_t value) { return value != 0 ? 1.0F : 0.0F; });
      break;
  }
  return array;
}

void ToMemory(const Array& array, void* memory) {
  const auto bits = [](float value) { return BFloat16Bits(value); };
  switch (array.type) {
    case Type::kFloat32:
      std::memcpy(memory, array.values.data(), array.values.size() * 4);
      break;
    case Type::kFloat16:
      Save<_Float16>(array.values, memory,
                     [](float v) { return static_cast<_Float16>(v); });
      break;
    case Type::kBFloat16:
      Save<uint16_t>(array.values, memory, bits);
      break;
    case Type::kInt32:
      Save<int32_t>(array.values, memory,
                    [](float v) { return static_cast<int32_t>(v); });
      break;
    case Type::kBool:
      Save<uint8_t>(array.values, memory,
                    [](float v) { return static_cast<uint8_t>(v != 0); });
      break;
  }
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
  Array sum = Sum(Slice(a, axis, 0, half), axis);
  const Array rest = Sum(Slice(a, axis, half, rows - half), axis);
  for (size_t n = 0; n < sum.values.size(); ++n) {
    sum.values[n] += rest.values[n];
  }
  return sum;
}

}  // namespace fake
