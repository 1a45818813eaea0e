/* Layers judged by values of PyTorch 2.15 in float64, on ref and cpu: outputs, and gradients of inputs and parameters.
 * The functions are silu, hardswish, sigmoid, tanh, leaky_relu, rms_norm and group_norm of torch.nn.functional, and
 * products. Element i of operand k is ((7 i + 3 k) mod 13 - 6) / 4: k is 1 and 2 for the inputs, 3 and 4 for the
 * parameters, 6 for dy. */
#include <criterion/criterion.h>
#include <math.h>

#include "tests/support/single_layer.h"

enum { MOST = 16 };

static const struct values {
    const char *layer;
    struct shape x;
    int64_t batch;
    struct settings settings;
    double y[MOST], dx[2][MOST], gradient[2][MOST];
} values[] = {
    {"silu",
     {1, {8}},
     1,
     {0},
     {-0.240615976, 0.731058579, -0.188770334, 0.971624826, -0.109455875, 1.22636171, 0, -0.273638286},
     {{-0.0393500139, 1.39150577, 0, -1.49052127, 0.0940724946, -1.30161769, 0.25, 0.0412941543}},
     {{0}}},
    {"hardswish",
     {1, {8}},
     1,
     {0},
     {-0.28125, 0.666666667, -0.208333333, 0.885416667, -0.114583333, 1.125, 0, -0.375},
     {{-0.0625, 1.25, 0, -1.375, 0.104166667, -1.25, 0.25, -0}},
     {{0}}},
    {"sigmoid",
     {1, {8}},
     1,
     {0},
     {0.320821301, 0.731058579, 0.377540669, 0.777299861, 0.437823499, 0.817574476, 0.5, 0.182425524},
     {{-0.0544737484, 0.2949179, 0, -0.25965718, 0.0615335207, -0.186433065, 0.125, -0.149146452}},
     {{0}}},
    {"tanh",
     {1, {8}},
     1,
     {0},
     {-0.635148952, 0.761594156, -0.462117157, 0.84828364, -0.244918662, 0.905148254, 0, -0.905148254},
     {{-0.149146452, 0.629961512, 0, -0.420622299, 0.235003712, -0.225883299, 0.5, -0.180706639}},
     {{0}}},
    {"leaky_relu",
     {1, {8}},
     1,
     {.slope = 0.2},
     {-0.15, 1, -0.1, 1.25, -0.05, 1.5, 0, -0.3},
     {{-0.05, 1.5, 0, -1.5, 0.05, -1.25, 0.1, -0.2}},
     {{0}}},
    {"rms_norm",
     {2, {2, 4}},
     2,
     {.epsilon = 1e-6},
     {-0.612372073, -0.816496097, -0.544330731, -0.680413414, -0.175561644, -1.05336986, 0, 0.702246575, 0.22116278,
      1.1058139, 0.589767414, 0.589767414, 0.72999578, 0.72999578, 1.29777028, 0.324442569},
     {{-0.215464234, -1.20962387, -0.00756014009, 0.835396447, 0.206826019, 0.69022197, 0.468164384, 0.655750633,
       0.695540873, 0.50322568, 1.24363989, 0.166673578, 0.371402786, 1.08858878, 0.819646283, 0.563504566}},
     {{1.58342589, 1.22652158, 2.53642283, -0.0469796777}}},
    {"group_norm",
     {3, {1, 2, 4}},
     2,
     {.groups = 2, .epsilon = 1e-5},
     {0.572821791, -0.515099005, -1.81559559, -0.475869862, 0.984900995, -0.927178209, -1.31064264, 0.912750743,
      1.97433785, 0.948675709, -0.867549528, 0.882450472, 2.44867571, 0.474337854, -0.235099055, 0.566225236},
     {{0.0116606121, -1.27705566, -0.400341605, 0.12473136, 0.349877454, 0.915517596, 0.0382237838, 0.237386461,
       -0.14229908, 0.284598159, -0.0474267021, 0.332022331, 0.189739695, -0.332038775, 0.142315523, -0.426911152}},
     {{2.19282377, 0.591689322, 2.62448057, -0.219657626}, {2, -0.75, 3, -3}}},
    {"group_norm",
     {3, {2, 2, 4}},
     1,
     {.groups = 4, .epsilon = 1e-5},
     {0.493785509, -0.569440308, -2.84161932, -0.564076841, 1.16459517, -0.89483477, -1.94720644, 0.7625669, 1.83540483,
      0.89483477, -1.05279356, 0.521358947, 2.50621449, 0.569440308, -0.158380679, 0.280150994},
     {{-3.21978334e-05, -1.00776647, -4.29304445e-05, 0.136832788, -1.07326111e-05, 0.833582977, -1.43101482e-05,
       0.26225751, 1.07326111e-05, 0.223949023, 1.43101482e-05, -0.0456109292, 3.21978334e-05, -0.0497655308,
       4.29304445e-05, -0.353479369}},
     {{2.2360322, 0.732137539, 2.2360322, -1.14573778}, {2, -0.75, 3, -3}}},
    {"multiply",
     {1, {4}},
     2,
     {0},
     {-0, -1.5, -0.125, -1.5625, -0.125, -1.5, 0, 1.125},
     {{-0, -2.25, 0, 1.875, 0.125, 1.25, 0.375, 0.75}, {0.1875, 1.5, -0, -1.875, -0.0625, -1.875, 0, 1.5}},
     {{0}}},
    {"multiply",
     {3, {2, 2, 2}},
     2,
     {.second = SECOND_VECTOR},
     {-0, -1.5, -0, -1.875, -0, -2.25, 0, 2.25, 0.0625, 1.5625, 0.125, 1.25, 0.1875, 0.9375, 0.25, 0.625},
     {{-0, -2.25, 0, 2.25, 0, 1.875, 0, 1.5, 0.1875, 0.9375, 0.25, 0.625, 0.3125, 0.3125, 0.375, -0},
      {0.125, -0.75, 3.125, 1.625}},
     {{0}}},
};

static void fill(float *to, size_t bytes, int operand)
{
    for (size_t i = 0; to && i < bytes / sizeof *to; i++)
        to[i] = (float)((int)(7 * i + 3 * (size_t)operand) % 13 - 6) / 4;
}

/* Equal up to a share of the largest. */
static void agree(const struct values *v, const char *what, const float *got, const double *right, size_t bytes)
{
    double most = 0;
    for (size_t i = 0; i < bytes / sizeof *got; i++) most = fmax(most, fabs(right[i]));
    for (size_t i = 0; i < bytes / sizeof *got; i++)
        cr_assert(fabs(got[i] - right[i]) <= 2e-6 * most, "%s, %s[%zu]: %.9g, not %.9g", v->layer, what, i,
                  (double)got[i], right[i]);
}

static void check(const char *backend, const struct values *v)
{
    struct single s;
    single_open(&s, backend, v->layer, &v->settings, &v->x, v->batch, RELU_OUTPUT);
    for (int k = 0; k < s.node->layer->inputs; k++) fill(s.x[k], s.x_bytes[k], 1 + k);
    for (int k = 0; k < s.parameters; k++) fill(s.parameter[k], s.parameter_bytes[k], 3 + k);
    fill(s.dy, s.y_bytes, 6);
    single_forward(&s);
    agree(v, "y", s.y, v->y, s.y_bytes);
    single_backward(&s);
    for (int k = 0; k < s.node->layer->inputs; k++) agree(v, k ? "dx[1]" : "dx[0]", s.dx[k], v->dx[k], s.x_bytes[k]);
    for (int k = 0; k < s.parameters; k++)
        agree(v, k ? "db" : "dw", s.gradient[k], v->gradient[k], s.parameter_bytes[k]);
    single_close(&s);
}

Test(torch_values, layers_agree_with_pytorch)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) check("ref", &values[i]), check("cpu", &values[i]);
}
