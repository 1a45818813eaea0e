/* The batch of a text data set: value 0 of a network that reads text, a sample being {3, T} of float. Row 0 holds token
 * ids, row 1 segment ids, row 2 the mask: 1 for a token, 0 for padding. */
#pragma once

#include "numerics/everywhere.h"

enum { TOKEN_IDS, TOKEN_SEGMENTS, TOKEN_MASK, TOKEN_ROWS };

/* The row of an id in a table of rows rows; 0 for an id outside of it, and for a NaN. */
EVERYWHERE int64_t token_row(float id, int64_t rows) { return id >= 0 && id < (float)rows ? (int64_t)id : 0; }
