// The text in a zip archive (PKWARE's APPNOTE.TXT, section 4.3), as a stream. For sources only.
#pragma once

#include <fstream>
#include <istream>
#include <memory>
#include <string>

namespace rapt::text {

// Whether a file begins as zip archives do; it stands at its start before and after.
bool is_zip(std::istream& file);

// The one file of an archive, unpacked as it is read; files whose names begin with _ or . and
// folders do not count. Nothing is written and no name is used as a path. Data that is damaged or
// cut off makes reading throw std::runtime_error, which says so. Throws Error (data) as `name`: no
// archive, none or several files, or one that is encrypted, split, of 4 GiB or more, or packed
// otherwise than by deflate.
std::unique_ptr<std::istream> open_zipped(std::ifstream file, const std::string& name);

}  // namespace rapt::text
