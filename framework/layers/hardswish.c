/* x min(max(x + 3, 0), 6) / 6 (Howard et al., 2019). Its derivative is 0 where x <= -3, 1 where x >= 3, and x / 3 + 1/2
 * between. The backward reads x: y does not determine it. */
#include "layers/elementwise.h"

ELEMENTWISE(hardswish, "x relu6(x + 3) / 6", READS_X,
            x <= -3  ? 0
            : x >= 3 ? x
                     : x * (x + 3) / 6,
            at <= -3  ? 0
            : at >= 3 ? dy
                      : dy * (at / 3 + 0.5),
            .element_flops = {4, 0, 3});
