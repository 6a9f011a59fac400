// The kinds of layers: one function for each, which reads the layer's fields.
#ifndef TF_LSTM_OPS_SESSION_LAYERS_LAYER_KINDS_H_
#define TF_LSTM_OPS_SESSION_LAYERS_LAYER_KINDS_H_

#include <memory>

#include "session/layer.h"
#include "session/node_reader.h"

namespace tf_lstm_ops::session {

// Reads the fields of a layer and makes it. Null where the reader failed. The
// arrays of the file must outlive the layer. Throws std::bad_alloc.
using ReadLayer = std::unique_ptr<Layer> (*)(NodeReader* reader);

// ReadX is in the file x.cc of its name, ReadRecurrent in read_recurrent.cc.
std::unique_ptr<Layer> ReadRecurrent(NodeReader* reader);
std::unique_ptr<Layer> ReadDense(NodeReader* reader);
std::unique_ptr<Layer> ReadActivation(NodeReader* reader);
std::unique_ptr<Layer> ReadMasking(NodeReader* reader);
std::unique_ptr<Layer> ReadEmbedding(NodeReader* reader);
std::unique_ptr<Layer> ReadConvolution(NodeReader* reader);
std::unique_ptr<Layer> ReadDepthwise(NodeReader* reader);
std::unique_ptr<Layer> ReadAffine(NodeReader* reader);
std::unique_ptr<Layer> ReadNormalization(NodeReader* reader);
std::unique_ptr<Layer> ReadPooling(NodeReader* reader);
std::unique_ptr<Layer> ReadGlobalPooling(NodeReader* reader);
std::unique_ptr<Layer> ReadReshape(NodeReader* reader);
std::unique_ptr<Layer> ReadTransposition(NodeReader* reader);
std::unique_ptr<Layer> ReadRepetition(NodeReader* reader);
std::unique_ptr<Layer> ReadUpsampling(NodeReader* reader);
std::unique_ptr<Layer> ReadPadding(NodeReader* reader);
std::unique_ptr<Layer> ReadConcatenation(NodeReader* reader);
std::unique_ptr<Layer> ReadCombination(NodeReader* reader);
std::unique_ptr<Layer> ReadPairs(NodeReader* reader);
std::unique_ptr<Layer> ReadMaskCombination(NodeReader* reader);
std::unique_ptr<Layer> ReadSlice(NodeReader* reader);
std::unique_ptr<Layer> ReadMaskOfLengths(NodeReader* reader);

// A bit of LayerKind::masks for operand k.
constexpr uint32_t MaskOperand(int k) { return uint32_t{1} << k; }
constexpr uint32_t kAllMasks = ~uint32_t{0};

struct LayerKind {
  const char* name;
  ReadLayer read;
  int min_operands, max_operands;
  bool reads_ints;  // operand 0 has the type kInt
  uint32_t masks;   // the operands of type kMask
};

constexpr int kRecurrentKind = 1;
constexpr int kMaskingKind = 4;

// By the number of the kind; the first is not one.
constexpr LayerKind kLayerKinds[] = {
    {},
    {"recurrent", ReadRecurrent, 1, 6, false, MaskOperand(1)},
    {"dense", ReadDense, 1, 1, false, 0},
    {"activation", ReadActivation, 1, 1, false, 0},
    {"masking", ReadMasking, 1, 1, false, 0},
    {"embedding", ReadEmbedding, 1, 1, true, 0},
    {"convolution", ReadConvolution, 1, 1, false, 0},
    {"depthwise convolution", ReadDepthwise, 1, 1, false, 0},
    {"scale and offset", ReadAffine, 1, 1, false, 0},
    {"normalization", ReadNormalization, 1, 1, false, 0},
    {"pooling", ReadPooling, 1, 1, false, 0},
    {"global pooling", ReadGlobalPooling, 1, 2, false, MaskOperand(1)},
    {"reshape", ReadReshape, 1, 1, false, 0},
    {"transposition", ReadTransposition, 1, 1, false, 0},
    {"repetition", ReadRepetition, 1, 1, false, 0},
    {"upsampling", ReadUpsampling, 1, 1, false, 0},
    {"padding", ReadPadding, 1, 1, false, 0},
    {"concatenation", ReadConcatenation, 1, kMaxOperands, false, 0},
    {"combination", ReadCombination, 2, kMaxOperands, false, 0},
    {"pairs of channels", ReadPairs, 1, 1, false, 0},
    {"combination of masks", ReadMaskCombination, 1, kMaxOperands, false,
     kAllMasks},
    {"slice", ReadSlice, 1, 1, false, 0},
    {"mask of lengths", ReadMaskOfLengths, 2, 2, true, 0},
};
constexpr uint32_t kLayerKindCount =
    sizeof(kLayerKinds) / sizeof(kLayerKinds[0]);

}  // namespace tf_lstm_ops::session

#endif  // TF_LSTM_OPS_SESSION_LAYERS_LAYER_KINDS_H_
