#include "bundle/tarball.h"

#include <archive.h>
#include <archive_entry.h>
#include <ctype.h>
#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "console/utf8.h"
#include "datasets/files.h"
#include "run/signals.h"
#include "yaml/new_file.h"

enum {
    PIECE = 1 << 16,
    PACKED_PIECE = 1 << 12, /* which unpacks to 128 MiB at most, between two looks for a signal */
    NAME_MAX_BYTES = 200,
    FOLDERS_MAX = 8, /* around a file */
    ENTRIES_MAX = 8192,
    SUMS_MAX = 1 << 22,
    RATIO_MAX = 200
};
static const uint64_t small_enough = UINT64_C(1) << 30; /* whatever the ratio */
static const char root[] = "rematch-bundle/", sums[] = "SHA256SUMS", tail[] = ".tar.zst";
static const unsigned char zstd_magic[4] = {0x28, 0xB5, 0x2F, 0xFD};

bool tarball_name_is_plain(const char *name)
{
    bool begins = true;
    int folders = 0;
    if (!*name || strlen(name) > NAME_MAX_BYTES) return false;
    for (; *name; name++) {
        if (*name == '/' && ++folders > FOLDERS_MAX) return false;
        if (begins && (*name == '/' || *name == '.')) return false;
        begins = *name == '/';
        if (!isascii(*name) || !(isalnum((unsigned char)*name) || strchr("/_-.", *name))) return false;
    }
    return !begins;
}

enum status tarball_digest(struct tar_file *file)
{
    descriptor_auto int descriptor = -1;
    if (!file->path) {
        file->bytes = strlen(file->text);
        SHA256Data((const uint8_t *)file->text, file->bytes, file->sha256);
        return ST_OK;
    }
    TRY(file_open(file->path, &descriptor, &file->bytes));
    return files_sha256(descriptor, file->path, file->bytes, signals_waiting, file->sha256);
}

static bool has_magic(const char *path)
{
    unsigned char begin[sizeof zstd_magic];
    descriptor_auto int descriptor = -1;
    uint64_t bytes;
    return file_open(path, &descriptor, &bytes) == ST_OK &&
           file_read(descriptor, path, 0, sizeof begin, begin) == ST_OK && !memcmp(begin, zstd_magic, sizeof begin);
}

bool tarball_is_one(const char *path) { return text_ends(path, tail) || has_magic(path); }

/* ---- writing ---- */

static enum status refuse_write(struct archive *a, const char *path)
{
    const char *why = archive_error_string(a);
    return fail(ST_FAILED, "%s: cannot be written: %s", path, why ? why : "no reason given");
}

/* descriptor -1: the content is the text. */
static enum status put_content(struct archive *a, const char *path, const struct tar_file *file, int descriptor)
{
    char piece[PIECE];
    for (uint64_t at = 0; at < file->bytes; at += PIECE) {
        const size_t count = file->bytes - at < PIECE ? (size_t)(file->bytes - at) : PIECE;
        if (descriptor >= 0) TRY(file_read(descriptor, file->path, at, count, piece));
        const void *from = descriptor >= 0 ? piece : file->text + at;
        if (archive_write_data(a, from, count) != (la_ssize_t)count) return refuse_write(a, path);
    }
    return ST_OK;
}

static enum status put_file(struct archive *a, const char *path, const struct tar_file *file)
{
    char name[sizeof root + NAME_MAX_BYTES];
    descriptor_auto int descriptor = -1;
    uint64_t bytes = file->bytes;
    snprintf(name, sizeof name, "%s%s", root, file->name);
    if (file->path) TRY(file_open(file->path, &descriptor, &bytes));
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_mtime(entry, 0, 0);
    archive_entry_set_size(entry, (la_int64_t)file->bytes);
    enum status status = ST_OK;
    if (bytes != file->bytes)
        status = fail(ST_FAILED, "%s: changed while it was read", file->path);
    else if (archive_write_header(a, entry) != ARCHIVE_OK)
        status = refuse_write(a, path);
    else
        status = put_content(a, path, file, descriptor);
    archive_entry_free(entry);
    return status;
}

int tarball_order(const void *a, const void *b)
{
    return strcmp(((const struct tar_file *)a)->name, ((const struct tar_file *)b)->name);
}

static enum status put_all(struct archive *a, const char *path, struct tar_file *file, int files)
{
    struct tar_file list = {.name = sums};
    freed_auto char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    for (int i = 0; i < files; i++) fprintf(out, "%s  %s\n", file[i].sha256, file[i].name);
    fclose(out);
    list.text = text;
    list.bytes = length;
    TRY(put_file(a, path, &list));
    for (int i = 0; i < files; i++) TRY(put_file(a, path, &file[i]));
    return archive_write_close(a) == ARCHIVE_OK ? ST_OK : refuse_write(a, path);
}

enum status tarball_write(const char *path, struct tar_file *file, int files)
{
    struct new_file made;
    if (access(path, F_OK) == 0 && !has_magic(path))
        return fail(ST_SPEC, "%s: exists and is no bundle; nothing was written", path);
    if (files >= ENTRIES_MAX)
        return fail(ST_SPEC, "%s: %d files; a bundle has at most %d", path, files, ENTRIES_MAX - 1);
    qsort(file, (size_t)files, sizeof *file, tarball_order);
    TRY(new_file_begin(&made, path));
    struct archive *a = archive_write_new();
    const bool good = archive_write_set_format_pax_restricted(a) == ARCHIVE_OK &&
                      archive_write_add_filter_zstd(a) == ARCHIVE_OK &&
                      archive_write_open_filename(a, made.name) == ARCHIVE_OK;
    const enum status status = good ? put_all(a, path, file, files) : refuse_write(a, path);
    archive_write_free(a);
    return new_file_end(&made, status);
}

/* ---- reading ---- */

struct unpacking {
    struct archive *archive;
    const char *path, *folder;
    struct region *region;
    int descriptor;
    char piece[PACKED_PIECE];
    int entries, names, files;
    const char **name;     /* of what was unpacked */
    struct tar_file *file; /* of SHA256SUMS */
    uint64_t left;         /* bytes that may still be unpacked */
};

static enum status unreadable(const struct unpacking *u)
{
    const char *why = archive_error_string(u->archive);
    if (signals_waiting()) return fail(ST_FAILED, "%s: reading it was stopped by a signal", u->path);
    if (archive_errno(u->archive) == EILSEQ) /* it has another format, in the library's words */
        return fail(ST_SPEC, "%s: not a bundle: %s", u->path, why);
    return fail(ST_FAILED, "%s: cut off or damaged, or the disk is full: %s", u->path, why);
}

/* The next bytes of the archive; nothing else would end the unpacking of one that is small and holds much. */
static la_ssize_t read_piece(struct archive *archive, void *of, const void **piece)
{
    struct unpacking *u = of;
    *piece = u->piece;
    const ssize_t got = signals_waiting() ? -1 : read(u->descriptor, u->piece, sizeof u->piece);
    if (got < 0) archive_set_error(archive, errno, "%s", strerror(errno));
    return got < 0 ? ARCHIVE_FATAL : got;
}

/* Folders on the way are made by the library. */
static enum status unpack_entry(struct unpacking *u, struct archive_entry *entry)
{
    const char *whole = archive_entry_pathname(entry);
    const int64_t bytes = archive_entry_size(entry);
    if (++u->entries > ENTRIES_MAX)
        return fail(ST_FAILED, "%s: refused: it has more than %d entries", u->path, ENTRIES_MAX);
    if (archive_entry_filetype(entry) == AE_IFDIR) return ST_OK; /* tar packs them, too */
    char *shown = region_text(u->region, "%s", whole ? whole : "");
    utf8_clean(shown, "");
    if (!whole || strncmp(whole, root, sizeof root - 1) != 0 || !tarball_name_is_plain(whole + sizeof root - 1))
        return fail(ST_SPEC, "%s: refused: no bundle has a file called '%s'", u->path, shown);
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return fail(ST_SPEC, "%s: refused: %s is not a plain file", u->path, shown);
    if (bytes < 0 || (uint64_t)bytes > u->left)
        return fail(ST_FAILED, "%s: refused: %s is larger than the %s that may still be unpacked", u->path, shown,
                    BYTES_TEXT(u->left));
    u->left -= (uint64_t)bytes;
    const char *path = region_text(u->region, "%s/%s", u->folder, whole + sizeof root - 1);
    if (access(path, F_OK) == 0) return fail(ST_DIFFERS, "%s: %s is there twice", u->path, shown);
    archive_entry_set_pathname(entry, path);
    archive_entry_set_perm(entry, 0644);
    if (archive_read_extract(u->archive, entry, ARCHIVE_EXTRACT_SECURE_SYMLINKS) != ARCHIVE_OK) return unreadable(u);
    region_grow(u->region, &u->name, u->names, sizeof *u->name);
    u->name[u->names++] = path + strlen(u->folder) + 1;
    return ST_OK;
}

static enum status unpack(struct unpacking *u)
{
    struct archive_entry *entry;
    int found;
    while ((found = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK) TRY(unpack_entry(u, entry));
    return found == ARCHIVE_EOF ? ST_OK : unreadable(u);
}

/* Lines of a digest, two blanks and a name, ordered by name. */
static enum status read_sums(struct unpacking *u)
{
    char *line;
    if (file_read_text(region_text(u->region, "%s/%s", u->folder, sums), SUMS_MAX, u->region, &line) != ST_OK)
        return fail(ST_SPEC, "%s: not a bundle: it has no %s", u->path, sums);
    while (*line) {
        char *end = strchr(line, '\n');
        const size_t digits = strspn(line, "0123456789abcdef");
        struct tar_file file = {.name = line + digits + 2};
        if (end) *end = '\0';
        if (!end || digits != 64 || strncmp(line + digits, "  ", 2) != 0 || !tarball_name_is_plain(file.name) ||
            (u->files && strcmp(u->file[u->files - 1].name, file.name) >= 0))
            return fail(ST_SPEC, "%s: not a bundle: line %d of %s is wrong", u->path, u->files + 1, sums);
        snprintf(file.sha256, sizeof file.sha256, "%s", line);
        file.path = region_text(u->region, "%s/%s", u->folder, file.name);
        region_grow(u->region, &u->file, u->files, sizeof *u->file);
        u->file[u->files++] = file;
        line = end + 1;
    }
    return ST_OK;
}

static enum status check_sums(struct unpacking *u)
{
    for (struct tar_file *file = u->file; file < u->file + u->files; file++) {
        struct tar_file found = *file;
        if (access(file->path, F_OK) != 0) return fail(ST_DIFFERS, "%s: %s was removed", u->path, file->name);
        TRY(tarball_digest(&found));
        if (strcmp(found.sha256, file->sha256) != 0)
            return fail(ST_DIFFERS, "%s: %s was changed: its SHA-256 is %s; expected %s", u->path, file->name,
                        found.sha256, file->sha256);
        *file = found;
    }
    for (int i = 0; i < u->names; i++) {
        const struct tar_file key = {.name = u->name[i]};
        if (strcmp(key.name, sums) != 0 && !bsearch(&key, u->file, (size_t)u->files, sizeof key, tarball_order))
            return fail(ST_DIFFERS, "%s: %s was added: it is not in %s", u->path, key.name, sums);
    }
    return ST_OK;
}

/* What the disk has left, and of a large archive no more than its files compress to. */
static uint64_t limit_of(const char *folder, uint64_t packed)
{
    struct statvfs disk;
    const uint64_t most = packed > small_enough / RATIO_MAX ? packed * RATIO_MAX : small_enough;
    const uint64_t room = statvfs(folder, &disk) == 0 ? (uint64_t)disk.f_bavail * disk.f_frsize : most;
    return room < most ? room : most;
}

enum status tarball_read(const char *path, const char *folder, struct region *region, struct tar_file **file,
                         int *files)
{
    struct unpacking u = {.path = path, .folder = folder, .region = region};
    descriptor_auto int descriptor = -1;
    uint64_t packed;
    enum status status = file_open(path, &descriptor, &packed);
    if (status != ST_OK) return fail(status == ST_MISSING ? ST_SPEC : status, "%s", status_message());
    u.descriptor = descriptor;
    u.left = limit_of(folder, packed);
    u.archive = archive_read_new();
    const bool good = archive_read_support_filter_zstd(u.archive) == ARCHIVE_OK &&
                      archive_read_support_format_tar(u.archive) == ARCHIVE_OK &&
                      archive_read_open(u.archive, &u, NULL, read_piece, NULL) == ARCHIVE_OK;
    status = good ? unpack(&u) : unreadable(&u);
    if (status == ST_OK) status = read_sums(&u);
    if (status == ST_OK) status = check_sums(&u);
    archive_read_free(u.archive);
    *file = u.file;
    *files = u.files;
    return status;
}
