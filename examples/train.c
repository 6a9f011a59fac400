/* Trains an LSTM in C by gradient descent. The first unit learns the mean of
 * each sequence.
 *
 *   train [STEPS]
 *
 * The program prints the loss before the first step and after the last one.
 * README.md in this folder has the command that builds it. It is valid C11 and
 * valid C++17.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tf_lstm_ops.h>

enum { kRows = 8, kTime = 6, kUnits = 4, kGates = 4 * kUnits };
enum { kWeights = kGates + kUnits * kGates + kGates }; /* I = 1 */
enum { kInputs = 10, kOutputs = 4 };                   /* of the forward pass */

/* The batch. The weights, kernel, recurrent_kernel and bias, and their
 * gradients.
 */
static float x[kRows * kTime], target[kRows], zeros[kRows * kUnits];
static float weights[kWeights], gradients[kWeights];
static float output[kRows * kUnits], output_grad[kRows * kUnits];

/* An array [rows, columns]. Without rows, a vector; without data, absent. */
static tf_lstm_ops_array Array(float* data, int64_t rows, int64_t columns) {
  tf_lstm_ops_array array;
  memset(&array, 0, sizeof array);
  array.struct_size = sizeof array;
  array.type = TF_LSTM_OPS_FLOAT32;
  array.data = data;
  array.rank = !data ? 0 : rows > 0 ? 2 : 1;
  array.shape[0] = rows > 0 ? rows : columns;
  array.shape[1] = rows > 0 ? columns : 0;
  return array;
}

static tf_lstm_ops_array Sequences(float* data, int64_t time, int64_t size) {
  tf_lstm_ops_array array = Array(data, kRows, time);
  array.rank = 3;
  array.shape[2] = size;
  return array;
}

/* Sets three arrays to the kernel, recurrent_kernel and bias in `data`. */
static void SetWeights(float* data, tf_lstm_ops_array* arrays) {
  arrays[0] = Array(data, 1, kGates);
  arrays[1] = Array(data + kGates, kUnits, kGates);
  arrays[2] = Array(data + kGates + kUnits * kGates, 0, kGates);
}

/* The next number of a fixed sequence, from -0.5 to 0.5. */
static float Next(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / (float)(1 << 24) - 0.5f;
}

static void MakeProblem(void) {
  uint32_t state = 1;
  for (int k = 0; k < kWeights; ++k) weights[k] = Next(&state);
  for (int b = 0; b < kRows; ++b) {
    for (int t = 0; t < kTime; ++t) {
      x[b * kTime + t] = Next(&state);
      target[b] += x[b * kTime + t] / kTime;
    }
  }
}

/* The mean square of the error of unit 0, and its gradient. */
static float Loss(void) {
  float loss = 0;
  for (int b = 0; b < kRows; ++b) {
    const float error = output[b * kUnits] - target[b];
    output_grad[b * kUnits] = 2 * error / kRows;
    loss += error * error / kRows;
  }
  return loss;
}

/* Takes `steps` steps, and prints the loss before and after them. Returns the
 * code of the first call that fails. */
static int32_t Train(tf_lstm_ops_layer* layer, int steps,
                     tf_lstm_ops_error* error) {
  const float rate = 0.5f;
  tf_lstm_ops_array in[kInputs], out[kOutputs];
  tf_lstm_ops_array given[kInputs + 5], grads[kInputs - 2];
  for (int k = 0; k < kInputs; ++k) in[k] = Array(NULL, 0, 0);
  for (int k = 0; k < kInputs - 2; ++k) grads[k] = Array(NULL, 0, 0);
  for (int k = 0; k < kOutputs; ++k) out[k] = Array(NULL, 0, 0);
  /* The forward pass has the inputs x, initial_h, initial_c, kernel,
   * recurrent_kernel, bias, and four that are absent here. Its outputs are
   * output, final_h, final_c and reserve. */
  in[0] = Sequences(x, kTime, 1);
  in[1] = in[2] = Array(zeros, kRows, kUnits);
  SetWeights(weights, in + 3);
  SetWeights(gradients, grads + 3);
  int32_t code =
      tf_lstm_ops_layer_infer_shapes(layer, in, kInputs, out, kOutputs, error);
  if (code != TF_LSTM_OPS_OK) return code;
  float* reserve = (float*)malloc((size_t)out[3].shape[0] * sizeof(float));
  if (!reserve) return TF_LSTM_OPS_RESOURCE_EXHAUSTED;
  out[0].data = output;
  out[3].data = reserve;
  /* The backward pass has these inputs, then output, reserve, and the gradients
   * of output, final_h and final_c. */
  memcpy(given, in, sizeof in);
  given[kInputs] = out[0];
  given[kInputs + 1] = out[3];
  given[kInputs + 2] = Sequences(output_grad, 1, kUnits);
  given[kInputs + 3] = given[kInputs + 4] = Array(NULL, 0, 0);
  for (int step = 0; step <= steps; ++step) {
    code =
        tf_lstm_ops_layer_forward(layer, 1, in, kInputs, out, kOutputs, error);
    if (code != TF_LSTM_OPS_OK) break;
    const float loss = Loss();
    if (step == 0 || step == steps) printf("step %d: loss %.6f\n", step, loss);
    if (step == steps) break;
    code = tf_lstm_ops_layer_backward(layer, 1, given, kInputs + 5, grads,
                                      kInputs - 2, error);
    if (code != TF_LSTM_OPS_OK) break;
    for (int k = 0; k < kWeights; ++k) weights[k] -= rate * gradients[k];
  }
  free(reserve);
  return code;
}

int main(int argc, char** argv) {
  tf_lstm_ops_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  tf_lstm_ops_layer_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.cell = TF_LSTM_OPS_LSTM;
  options.returns_last_step = 1;
  MakeProblem();
  tf_lstm_ops_layer* layer = NULL;
  int32_t code = tf_lstm_ops_layer_open(&options, &layer, &error);
  if (code == TF_LSTM_OPS_OK) {
    code = Train(layer, argc > 1 ? atoi(argv[1]) : 200, &error);
  }
  tf_lstm_ops_layer_close(layer);
  if (code == TF_LSTM_OPS_OK) return 0;
  fprintf(stderr, "train: %s: %s\n", tf_lstm_ops_code_text(code), error.text);
  return 1;
}
