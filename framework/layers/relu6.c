/* min(max(x, 0), 6) (Krizhevsky, 2010). Its derivative is 1 where 0 < y < 6, else 0; a NaN stays one. */
#include "layers/elementwise.h"

ELEMENTWISE(relu6, "max(x, 0), at most 6", READS_Y,
            x <= 0   ? 0
            : x >= 6 ? 6
                     : x,
            at > 0 && at < 6 ? dy : 0, .element_flops = {2, 0, 1});
