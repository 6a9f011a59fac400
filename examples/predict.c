// Predicts with a SavedModel through TensorFlow's C API, without Python.
//
//   predict LIBRARY SAVED_MODEL INPUT OUTPUT DIM... < numbers
//
// LIBRARY is the native library of tf_lstm_ops, or - for none; INPUT and OUTPUT
// are tensors of the model's graph, such as serving_default_x:0; DIM... is the
// shape of the input. Reads the input's numbers, in float32 and the last
// dimension fastest, and prints the output's: a line per last dimension.
// README.md in this folder tells how to build it and where the names come from.

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api.h>

enum { kMaxRank = 8 };

// What lives as long as the program runs; null until it is made.
typedef struct {
  TF_Status* status;
  TF_Library* library;
  TF_Graph* graph;
  TF_SessionOptions* options;
  TF_Session* session;
  TF_Tensor* input;
  TF_Tensor* output;
} Predictor;

// Whether the last call of TensorFlow went well; prints its error otherwise.
static bool Ok(const Predictor* p, const char* what) {
  if (TF_GetCode(p->status) == TF_OK) return true;
  fprintf(stderr, "predict: cannot %s: %s\n", what, TF_Message(p->status));
  return false;
}

static bool LoadModel(Predictor* p, const char* library, const char* folder) {
  if (strcmp(library, "-") != 0) {
    p->library = TF_LoadLibrary(library, p->status);
    if (!Ok(p, "load the library")) return false;
  }
  const char* const tags[] = {"serve"};
  p->session = TF_LoadSessionFromSavedModel(p->options, NULL, folder, tags, 1,
                                            p->graph, NULL, p->status);
  if (Ok(p, "load the model")) return true;
  if (strstr(TF_Message(p->status), "TfLstmOps>") != NULL) {
    fprintf(stderr,
            "predict: give the native library of tf_lstm_ops as LIBRARY; "
            "`tf-lstm-ops info` prints its path\n");
  }
  return false;
}

// Finds the float32 tensor "operation:index" in the graph.
static bool FindTensor(const Predictor* p, const char* name,
                       TF_Output* tensor) {
  const char* colon = strrchr(name, ':');
  char* end = NULL;
  const long index = colon ? strtol(colon + 1, &end, 10) : -1;
  if (index < 0 || end == colon + 1 || *end != '\0') {
    fprintf(stderr, "predict: %s is no name such as operation:0\n", name);
    return false;
  }
  const size_t length = (size_t)(colon - name);
  char* operation = malloc(length + 1);
  if (operation == NULL) {
    fprintf(stderr, "predict: out of memory\n");
    return false;
  }
  memcpy(operation, name, length);
  operation[length] = '\0';
  tensor->oper = TF_GraphOperationByName(p->graph, operation);
  free(operation);
  if (tensor->oper == NULL || index >= TF_OperationNumOutputs(tensor->oper)) {
    fprintf(stderr, "predict: the model has no tensor %s\n", name);
    return false;
  }
  tensor->index = (int)index;
  if (TF_OperationOutputType(*tensor) != TF_FLOAT) {
    fprintf(stderr, "predict: %s is not float32\n", name);
    return false;
  }
  return true;
}

// The number of elements of a shape, -1 where `texts` is none.
static int64_t ParseShape(char** texts, int rank, int64_t* dims) {
  if (rank > kMaxRank) return -1;
  int64_t size = 1;
  for (int k = 0; k < rank; ++k) {
    char* end = NULL;
    dims[k] = strtoll(texts[k], &end, 10);
    if (end == texts[k] || *end != '\0' || dims[k] < 1) return -1;
    if (dims[k] > INT32_MAX / size) return -1;
    size *= dims[k];
  }
  return size;
}

static bool ReadInput(Predictor* p, char** texts, int rank) {
  int64_t dims[kMaxRank];
  const int64_t size = ParseShape(texts, rank, dims);
  if (size < 0) {
    fprintf(stderr, "predict: DIM... must be at most %d positive numbers\n",
            kMaxRank);
    return false;
  }
  p->input =
      TF_AllocateTensor(TF_FLOAT, dims, rank, (size_t)size * sizeof(float));
  if (p->input == NULL) {
    fprintf(stderr, "predict: out of memory\n");
    return false;
  }
  float* numbers = TF_TensorData(p->input);
  int64_t count = 0;
  while (count < size && scanf("%f", &numbers[count]) == 1) ++count;
  float excess;
  if (count == size && scanf("%f", &excess) == EOF) return true;
  fprintf(stderr,
          "predict: the input must be %" PRId64
          " numbers, no more and no less\n",
          size);
  return false;
}

static bool Run(Predictor* p, TF_Output input, TF_Output output) {
  TF_SessionRun(p->session, NULL, &input, &p->input, 1, &output, &p->output, 1,
                NULL, 0, NULL, p->status);
  return Ok(p, "run the model");
}

static bool PrintOutput(const Predictor* p) {
  const int rank = TF_NumDims(p->output);
  const int64_t size = TF_TensorElementCount(p->output);
  const int64_t width = rank > 0 ? TF_Dim(p->output, rank - 1) : 1;
  const float* numbers = TF_TensorData(p->output);
  for (int64_t k = 0; k < size; ++k) {
    // Nine digits tell any two floats apart.
    printf("%.9g%c", numbers[k], (k + 1) % width ? ' ' : '\n');
  }
  if (fflush(stdout) == 0 && !ferror(stdout)) return true;
  fprintf(stderr, "predict: cannot write the output\n");
  return false;
}

static bool Predict(Predictor* p, int argc, char** argv) {
  TF_Output input, output;
  return LoadModel(p, argv[1], argv[2]) && FindTensor(p, argv[3], &input) &&
         FindTensor(p, argv[4], &output) && ReadInput(p, argv + 5, argc - 5) &&
         Run(p, input, output) && PrintOutput(p);
}

static void Close(Predictor* p) {
  if (p->output != NULL) TF_DeleteTensor(p->output);
  if (p->input != NULL) TF_DeleteTensor(p->input);
  if (p->session != NULL) {
    TF_CloseSession(p->session, p->status);
    TF_DeleteSession(p->session, p->status);
  }
  TF_DeleteSessionOptions(p->options);
  TF_DeleteGraph(p->graph);
  // The handle only: a library with ops stays loaded.
  if (p->library != NULL) TF_DeleteLibraryHandle(p->library);
  TF_DeleteStatus(p->status);
}

int main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr,
            "usage: predict LIBRARY SAVED_MODEL INPUT OUTPUT DIM... < numbers\n"
            "LIBRARY may be - for none\n");
    return 2;
  }
  Predictor predictor = {.status = TF_NewStatus(),
                         .graph = TF_NewGraph(),
                         .options = TF_NewSessionOptions()};
  const bool done = Predict(&predictor, argc, argv);
  Close(&predictor);
  return done ? 0 : 1;
}
