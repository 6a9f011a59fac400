// InlineVector: a vector whose first elements lie in the object itself, so that
// short ones do not allocate memory.
#ifndef TF_LSTM_OPS_CORE_INLINE_VECTOR_H_
#define TF_LSTM_OPS_CORE_INLINE_VECTOR_H_

#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

namespace tf_lstm_ops {

// T must have a default constructor. Up to kInline elements lie in the object.
// If there are more, all of them lie in a std::vector. Appending then
// invalidates pointers to elements.
template <class T, size_t kInline>
class InlineVector {
 public:
  InlineVector() = default;
  InlineVector(std::initializer_list<T> elements) {
    for (const T& element : elements) push_back(element);
  }

  // Appends a default element and returns it.
  T& emplace_back() {
    if (size_ < kInline) return inline_[size_++];
    if (size_ == kInline) {
      more_.assign(std::make_move_iterator(inline_.begin()),
                   std::make_move_iterator(inline_.end()));
    }
    ++size_;
    return more_.emplace_back();
  }
  void push_back(T element) { emplace_back() = std::move(element); }

  size_t size() const { return size_; }
  T* begin() { return size_ <= kInline ? inline_.data() : more_.data(); }
  const T* begin() const {
    return size_ <= kInline ? inline_.data() : more_.data();
  }
  T* end() { return begin() + size_; }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t n) { return begin()[n]; }
  const T& operator[](size_t n) const { return begin()[n]; }
  T& back() { return begin()[size_ - 1]; }
  const T& back() const { return begin()[size_ - 1]; }

 private:
  std::array<T, kInline> inline_;
  std::vector<T> more_;
  size_t size_ = 0;
};

}  // namespace tf_lstm_ops

#endif  // TF_LSTM_OPS_CORE_INLINE_VECTOR_H_
