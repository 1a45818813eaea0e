/* Improves a sequence of a network of any size: window after window of its backwards is searched again by a beam over
 * states, while the rest of the sequence stays. */
#pragma once

#include "search/step_model.h"

/* A faster sequence within limit live bytes, in region; without items: none was found. Ends after a fixed number of
 * windows, times the network's size. */
struct sequence improve_windows(const struct step_model *model, size_t limit, const struct sequence *sequence,
                                struct region *region);
