#include "server/session/staging_folder.h"

#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace flamewire::server {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view staging_prefix = "arriving-";

}  // namespace

Result<StagingFolder> StagingFolder::create(const std::string& data_dir) {
    std::string path = fmt::format("{}/{}XXXXXX", data_dir, staging_prefix);
    if (::mkdtemp(path.data()) == nullptr) return fail_errno(fmt::format("cannot write into {}", data_dir), errno);
    return StagingFolder(std::move(path));
}

StagingFolder::~StagingFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
}

void remove_staging_folders(const std::string& data_dir) {
    std::error_code error;
    for (fs::directory_iterator at(data_dir, error); !error && at != fs::directory_iterator(); at.increment(error)) {
        std::error_code ignored;
        if (at->path().filename().string().starts_with(staging_prefix)) fs::remove_all(at->path(), ignored);
    }
}

}  // namespace flamewire::server
