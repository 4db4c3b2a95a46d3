#include "server/session/side_files.h"

#include <filesystem>

#include "base/file.h"

namespace flamewire::server {

std::string side_file(const std::string& stream_path, std::string_view name) {
    const std::filesystem::path stream(stream_path);
    if (stream.filename() == stream_name) return (stream.parent_path() / name).string();
    return stream_path + "." + std::string(name);
}

bool is_imported(const std::string& stream_path) {
    return file_status(side_file(stream_path, imported_name)).has_value();
}

}  // namespace flamewire::server
