/* Streams a model that begins with an embedding: one index in, one output out.
 *
 *   indices FILE < INDICES
 *
 * FILE is the file that tf_lstm_ops.inference.Session.save wrote. The program
 * reads integers and prints the outputs of each step on a line. README.md in
 * this folder tells how to build the program. It is valid C11 and valid C++17.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tf_lstm_ops.h>

static tf_lstm_ops_array NewArray(int32_t type, int32_t rank, int64_t last,
                                  void* data) {
  tf_lstm_ops_array array;
  memset(&array, 0, sizeof array);
  array.struct_size = sizeof array;
  array.type = type;
  array.rank = rank;
  for (int k = 0; k < rank; ++k) array.shape[k] = 1; /* one row, one step */
  array.shape[rank - 1] = last;
  array.data = data;
  return array;
}

/* Computes all steps of the input. Returns a code. */
static int32_t Stream(const tf_lstm_ops_session* session,
                      tf_lstm_ops_error* error) {
  tf_lstm_ops_session_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  int32_t code = tf_lstm_ops_session_get_info(session, &info, error);
  if (code != TF_LSTM_OPS_OK) return code;
  tf_lstm_ops_stream* stream = NULL;
  code = tf_lstm_ops_stream_open(session, 1, &stream, error);
  if (code != TF_LSTM_OPS_OK) return code;

  const int64_t size = info.output_size;
  float* y = (float*)calloc((size_t)size, sizeof *y);
  int32_t index = 0;
  /* [B, steps], and [B, steps, O], or [B, O] of a model that returns a step. */
  tf_lstm_ops_array in = NewArray(TF_LSTM_OPS_INT32, 2, 1, &index);
  tf_lstm_ops_array out =
      NewArray(TF_LSTM_OPS_FLOAT32, info.returns_sequence ? 3 : 2, size, y);
  while (y && code == TF_LSTM_OPS_OK && scanf("%d", &index) == 1) {
    code = tf_lstm_ops_stream_run_arrays(stream, &in, 1, &out, 1, error);
    for (int64_t k = 0; code == TF_LSTM_OPS_OK && k < size; ++k) {
      printf("%.9g%c", y[k], k + 1 < size ? ' ' : '\n');
    }
  }
  free(y);
  tf_lstm_ops_stream_close(stream);
  return code;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: indices FILE < INDICES\n");
    return 2;
  }
  tf_lstm_ops_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  tf_lstm_ops_session* session = NULL;
  int32_t code = tf_lstm_ops_session_open(argv[1], NULL, &session, &error);
  if (code == TF_LSTM_OPS_OK) code = Stream(session, &error);
  if (code != TF_LSTM_OPS_OK) fprintf(stderr, "indices: %s\n", error.text);
  tf_lstm_ops_session_close(session);
  return code != TF_LSTM_OPS_OK;
}
