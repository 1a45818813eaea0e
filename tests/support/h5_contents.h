/* All that an HDF5 file holds, by bare calls of the library, as text: a line for every array and attribute. */
#ifndef REMATCH_TESTS_SUPPORT_H5_CONTENTS_H
#define REMATCH_TESTS_SUPPORT_H5_CONTENTS_H

/* The lines, to be freed; what differs from run to run (times, memory of the process, when it was made) is only named.
 * NULL: the file, or something in it, cannot be read. */
char *contents_of(const char *path);

/* The first line of a that is not in the same place in b, to be freed; NULL: they are the same. */
char *contents_difference(const char *a, const char *b);

#endif
