/* Loops over cases that are drawn at random go on by THINNING. Sanitizers make computing a dozen times slower, and find
 * in some cases what they find in all: that the others come out right is shown by a build without them. */
#pragma once

#ifdef __SANITIZE_ADDRESS__
enum { THINNING = 7 }; /* prime, so that what is counted modulo something else still takes every value */
#else
enum { THINNING = 1 };
#endif
