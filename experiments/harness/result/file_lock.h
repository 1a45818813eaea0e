/* Locks of whole files. A lock belongs to the open file, so the system releases it however its process ends. Some file
 * systems have none: Lustre and NFS, depending on how they are mounted, and some in user space. */
#pragma once

#include <stdbool.h>

#include "base/status.h"

/* LOCK_UNKNOWN: the file system does not answer; errno is the reason. */
enum lock { LOCK_FREE, LOCK_HELD, LOCK_UNKNOWN };

/* Whether another process holds the lock. */
enum lock file_lock_look(int descriptor);

/* Takes the lock, or (LOCK_HELD) leaves it to the process that has it. LOCK_FREE is returned, too, where the file
 * system has no locks and none are required. */
enum lock file_lock_take(int descriptor);

/* False where HDF5_USE_FILE_LOCKING, which the HDF5 library obeys too, is FALSE or 0. */
bool file_lock_required(void);

/* The error after LOCK_UNKNOWN: ST_FAILED, with errno and what to do. */
enum status file_lock_error(const char *path);
