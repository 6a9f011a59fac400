/* Classifies texts: a model of whole sequences, such as an embedding, a
 * bidirectional LSTM and a dense layer, which cannot stream.
 *
 *   classify FILE < TEXTS
 *
 * FILE is the file that tf_lstm_ops.inference.Session.save wrote. Each line of
 * TEXTS has the indices of the words of a text. The program prints the output
 * of the model for each text on a line. README.md in this folder tells how to
 * build the program. It is valid C11 and valid C++17.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tf_lstm_ops.h>

enum { kMaxWords = 4096 };

static tf_lstm_ops_array NewArray(int32_t type) {
  tf_lstm_ops_array array;
  memset(&array, 0, sizeof array);
  array.struct_size = sizeof array;
  array.type = type;
  return array;
}

/* Reads the indices of a line. Returns their number, -1 at the end of the
 * input, -2 if there is something else or there are too many. */
static int64_t ReadText(int32_t* words) {
  int64_t count = 0;
  for (;;) {
    int c = getchar();
    while (c == ' ' || c == '\t' || c == '\r') c = getchar();
    if (c == EOF) return count ? count : -1;
    if (c == '\n') return count;
    ungetc(c, stdin);
    if (count == kMaxWords || scanf("%d", &words[count]) != 1) return -2;
    ++count;
  }
}

/* Computes one text, and prints the output. Returns a code. */
static int32_t Classify(const tf_lstm_ops_session* session, int32_t* words,
                        int64_t count, tf_lstm_ops_error* error) {
  tf_lstm_ops_array in = NewArray(TF_LSTM_OPS_INT32); /* [B, T] */
  in.rank = 2;
  in.shape[0] = 1;
  in.shape[1] = count;
  in.data = words;
  tf_lstm_ops_array out = NewArray(TF_LSTM_OPS_FLOAT32);
  int32_t code =
      tf_lstm_ops_session_infer_shapes(session, &in, 1, &out, 1, error);
  if (code != TF_LSTM_OPS_OK) return code;
  size_t size = 1;
  for (int k = 0; k < out.rank; ++k) size *= (size_t)out.shape[k];
  float* y = (float*)calloc(size ? size : 1, sizeof *y);
  if (!y) return TF_LSTM_OPS_RESOURCE_EXHAUSTED;
  out.data = y;
  code = tf_lstm_ops_session_run_arrays(session, &in, 1, &out, 1, error);
  for (size_t k = 0; code == TF_LSTM_OPS_OK && k < size; ++k) {
    printf("%.9g%c", y[k], k + 1 < size ? ' ' : '\n');
  }
  free(y);
  return code;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: classify FILE < TEXTS\n");
    return 2;
  }
  tf_lstm_ops_error error;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  tf_lstm_ops_session* session = NULL;
  int32_t code = tf_lstm_ops_session_open(argv[1], NULL, &session, &error);
  static int32_t words[kMaxWords];
  int64_t count = 0;
  while (code == TF_LSTM_OPS_OK && (count = ReadText(words)) >= 0) {
    code = Classify(session, words, count, &error);
  }
  if (code != TF_LSTM_OPS_OK) {
    fprintf(stderr, "classify: %s: %s\n", tf_lstm_ops_code_text(code),
            error.text);
  } else if (count == -2) {
    fprintf(stderr, "classify: a text must be at most %d integers\n",
            kMaxWords);
  }
  tf_lstm_ops_session_close(session);
  return code != TF_LSTM_OPS_OK || count == -2;
}
