// Tests of core/shape.h and core/signature.h.
#include "core/signature.h"

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/shape.h"
#include "harness.h"

namespace tf_lstm_ops {
namespace {

constexpr Extent kT = Extent::kTime, kB = Extent::kBatch, kI = Extent::kInput,
                 kH = Extent::kCell, k4H = Extent::kFourCell,
                 kIH = Extent::kInputPlusCell;

Signature TestSignature() {
  return {"Test",
          {},
          {{"n", Dims(), "int64"},
           {"x", {kT, kB, kI}},
           {"c", {kB, kH}},
           {"w", {kIH, k4H}},
           {"p", {kH}, "T", true}},
          {{"y", {kT, kB, kH}}}};
}

Shape S(std::vector<int64_t> dims) { return Shape(dims); }

TEST(ShapePrintsUnknowns) {
  CHECK_EQ(Shape().ToString(), "<unknown>");
  CHECK_EQ(S({}).ToString(), "[]");
  CHECK_EQ(S({2, kUnknown, 3}).ToString(), "[2,?,3]");
}

TEST(ShapesAreEqualByRankAndDimensions) {
  CHECK(S({2, 3}) == S({2, 3}));
  CHECK(!(S({2, 3}) == S({2, 4})));
  CHECK(!(S({2, 3}) == S({2, 3, 1})));
  CHECK(!(S({}) == Shape()));
  CHECK(Shape::OfRank(0) == S({}));
}

TEST(ShapeOfHigherRankStoresFirstDimensions) {
  const Shape shape = S({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK_EQ(shape.rank(), 10);
  CHECK_EQ(shape.dim(7), 8);
  CHECK_EQ(shape.dim(8), kUnknown);
  CHECK_EQ(shape.dims().size(), size_t{10});
  CHECK_EQ(shape.ToString(), "[1,2,3,4,5,6,7,8,?,?]");
  CHECK(!(shape == shape));
  Shape other = Shape::OfRank(9);
  other.set_dim(8, 5);
  CHECK_EQ(other.dim(8), kUnknown);
}

TEST(InlineVectorGrowsBeyondInlineElements) {
  InlineVector<std::string, 2> words;
  for (const char* word : {"a", "b", "c", "d"}) {
    words.push_back(word);
    CHECK_EQ(words.back(), word);
    CHECK_EQ(words[0], "a");
    CHECK_EQ(static_cast<size_t>(words.end() - words.begin()), words.size());
  }
  CHECK_EQ(words[1] + words[2], "bc");
}

TEST(CheckedProductSeesOverflowBehindZero) {
  int64_t product = -1;
  CHECK(CheckedProduct({3, 4, 5}, &product) && product == 60);
  CHECK(CheckedProduct({3, 0, 5}, &product) && product == 0);
  CHECK(!CheckedProduct({int64_t{1} << 62, 2}, &product));
  CHECK(!CheckedProduct({int64_t{1} << 62, 0, 2}, &product));
}

TEST(CheckInputsFindsSizes) {
  Sizes sizes;
  const Status status =
      CheckInputs(TestSignature(),
                  {S({}), S({7, 2, 3}), S({2, 5}), S({8, 20}), S({5})}, &sizes);
  CHECK_EQ(status.message(), "");
  CHECK(status.ok());
  CHECK(sizes.time == 7 && sizes.batch == 2 && sizes.input == 3 &&
        sizes.cell == 5);
  CHECK_EQ(OutputShape(TestSignature().outputs[0], sizes).ToString(),
           "[7,2,5]");
}

TEST(CheckInputsTakesNoRows) {
  for (const int64_t time : {0, 7}) {
    Sizes sizes;
    CHECK(CheckInputs(TestSignature(),
                      {S({}), S({time, 0, 3}), S({0, 5}), S({8, 20}), S({5})},
                      &sizes)
              .ok());
    CHECK(sizes.time == time && sizes.batch == 0 && sizes.cell == 5);
  }
}

TEST(CheckInputsNamesTheArgument) {
  const struct {
    Shapes inputs;
    const char* message;
  } cases[] = {
      {{S({1}), S({7, 2, 3}), S({2, 5}), S({8, 20}), S({5})},
       "n must be rank 0 but is rank 1"},
      {{S({}), S({7, 2}), S({2, 5}), S({8, 20}), S({5})},
       "x must be rank 3 but is rank 2"},
      {{S({}), S({1, 1, 1, 1, 1, 1, 1, 1, 1}), S({2, 5}), S({8, 20}), S({5})},
       "x must be rank 3 but is rank 9"},
      {{S({}), S({7, 2, 3}), S({3, 5}), S({8, 20}), S({5})},
       "c.dim_size(0) != batch_size: 3 vs. 2"},
      {{S({}), S({7, 2, 3}), S({2, 5}), S({9, 20}), S({5})},
       "w.dim_size(0) != input_size + cell_size: 9 vs. 8"},
      {{S({}), S({7, 2, 3}), S({2, 5}), S({8, 21}), S({5})},
       "w.dim_size(1) != cell_size * 4: 21 vs. 20"},
      {{S({}), S({7, 2, 3}), S({2, 5}), S({8, 20}), S({4})},
       "p.dim_size(0) != cell_size: 4 vs. 5"},
      {{S({}), S({7, 2, 3}), S({2, 0}), S({3, 0}), S({0})},
       "c is empty, has shape: [2,0]"},
  };
  for (const auto& c : cases) {
    Sizes sizes;
    const Status status = CheckInputs(TestSignature(), c.inputs, &sizes);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK_EQ(status.message(), c.message);
  }
}

TEST(CheckInputsPassesUnknowns) {
  Sizes sizes;
  CHECK(CheckInputs(TestSignature(),
                    {Shape(), S({kUnknown, 2, kUnknown}), S({kUnknown, 5}),
                     Shape(), Shape()},
                    &sizes)
            .ok());
  CHECK(sizes.time == kUnknown && sizes.batch == 2 && sizes.cell == 5);
  CHECK(!CheckInputs(
             TestSignature(),
             {Shape(), S({kUnknown, 2, kUnknown}), S({3, 5}), Shape(), Shape()},
             &sizes)
             .ok());
}

TEST(CheckInputsTakesAbsentOptional) {
  Sizes sizes;
  CHECK(CheckInputs(TestSignature(),
                    {S({}), S({7, 2, 3}), S({2, 5}), S({8, 20}), S({0})},
                    &sizes)
            .ok());
}

TEST(CheckInputsRefusesOverflow) {
  const int64_t huge = int64_t{1} << 61;
  const std::vector<Shapes> cases = {
      {S({}), S({huge, 2, 0}), S({2, 5}), S({5, 20}), S({5})},
      {S({}), S({1, 2, huge}), S({2, 5}), Shape(), S({5})},
      // The sum input_size + cell_size itself does not fit.
      {S({}), S({1, 2, std::numeric_limits<int64_t>::max() - 1}), S({2, 5}),
       Shape(), S({5})},
      {S({}), S({1, 1, 1}), S({1, huge}), Shape(), Shape()},
  };
  for (const auto& inputs : cases) {
    Sizes sizes;
    const Status status = CheckInputs(TestSignature(), inputs, &sizes);
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(status.message().find("overflows") != std::string::npos);
  }
}

}  // namespace
}  // namespace tf_lstm_ops
