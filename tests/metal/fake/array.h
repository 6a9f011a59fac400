// Array: the values of a tensor while a graph runs.
#ifndef TF_LSTM_OPS_TESTS_METAL_FAKE_ARRAY_H_
#define TF_LSTM_OPS_TESTS_METAL_FAKE_ARRAY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace fake {

// The values of MPSDataType.
enum class Type : uint32_t {
  kFloat32 = 0x10000020,
  kFloat16 = 0x10000010,
  kBFloat16 = 0x90000010,
  kInt32 = 0x20000020,
  kBool = 0x80000008,
};

using Shape = std::vector<int64_t>;

// Raises for a type that is not emulated.
Type CheckedType(uint32_t type);
int64_t BytesOf(Type type);
int64_t SizeOf(const Shape& shape);
std::string ToString(const Shape& shape);
std::string ToString(Type type);

// Distances between neighbours along each axis, in row-major order.
std::vector<int64_t> StridesOf(const Shape& shape);

// Values of any type, stored as float. Integers must stay below 2^24.
struct Array {
  Type type = Type::kFloat32;
  Shape shape;
  std::vector<float> values;

  Array() = default;
  Array(Type type, Shape shape) : type(type), shape(shape), values(SizeOf(shape)) {}
};

// Rounds a value to one of the type.
float Round(Type type, float value);

Array FromMemory(Type type, const Shape& shape, const void* memory);
void ToMemory(const Array& array, void* memory);

// The values at offset + Σ index[axis] strides[axis], for all indices of shape.
Array Strided(const Array& from, const Shape& shape, int64_t offset,
              const std::vector<int64_t>& strides);
// As NumPy broadcasts; the shapes must allow it.
Array Broadcast(const Array& from, const Shape& shape);

// [rows, inner] times [inner, columns].
Array MatrixProduct(const Array& a, const Array& b);
Array Transposed(const Array& a);
// Rows `start` to `start + length` along an axis.
Array Slice(const Array& a, size_t axis, int64_t start, int64_t length);
Array Reshaped(Array a, const Shape& shape);
std::vector<const Array*> PointersTo(const std::vector<Array>& arrays);
// Arrays of one type, which differ in their rows along the axis.
Array Concat(const std::vector<const Array*>& parts, size_t axis);
// The sum along an axis, of which one row is left. Computed pairwise as on a GPU.
Array Sum(const Array& a, size_t axis);

// The values of a function of each element.
template <class Function>
Array Map(Array a, Function function) {
  for (float& value : a.values) value = function(value);
  return a;
}
// Of the elements of both, after `b` is broadcast.
template <class Function>
Array Map(Array a, const Array& b, Function function) {
  const Array same = Broadcast(b, a.shape);
  for (size_t k = 0; k < a.values.size(); ++k) {
    a.values[k] = function(a.values[k], same.values[k]);
  }
  return a;
}

}  // namespace fake

#endif  // TF_LSTM_OPS_TESTS_METAL_FAKE_ARRAY_H_
