// Files as streams of their text, unpacked where they are gzip files or zip archives. For sources
// only.
#pragma once

#include <filesystem>
#include <istream>
#include <memory>

namespace rapt::text {

// A file opened for reading; one that starts as gzip files do is read unpacked, and of a zip
// archive the one file in it (zip.h). Packed data that is damaged or cut off makes reading throw
// std::runtime_error, which says so. Throws Error (data): missing, a folder, unreadable, an archive
// of another kind.
std::unique_ptr<std::istream> open_text(const std::filesystem::path& path);

}  // namespace rapt::text
