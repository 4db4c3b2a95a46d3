// Arbitrary bytes as an unpacked archive: it is refused, or only the files of the session are written, and only into
// the given directory.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "server/session/archive.h"
#include "server/session/side_files.h"

namespace {

namespace fs = std::filesystem;

class Memory final : public flamewire::profile::ImportSource {
public:
    explicit Memory(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    flamewire::Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        const std::size_t at = std::min<std::uint64_t>(offset, bytes_.size());
        const std::size_t count = std::min(into.size(), bytes_.size() - at);
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), count, into.begin());
        return count;
    }

private:
    std::span<const std::uint8_t> bytes_;
};

// "…/into", in an otherwise empty folder of this process.
const fs::path& scratch() {
    // Never destroyed, because the exit handler uses it.
    static const fs::path& path = *[] {
        std::string pattern = (fs::temp_directory_path() / "flamewire-fuzz.XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        std::atexit([] { fs::remove_all(scratch().parent_path()); });
        return new fs::path(fs::path(pattern) / "into");
    }();
    return path;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace flamewire;
    fs::create_directory(scratch());
    Memory memory({data, size});
    const auto name = server::read_archive(memory, scratch().string());
    if (name && (name->find('/') != std::string::npos || name->starts_with("."))) std::abort();
    if (name && !fs::is_regular_file(fs::symlink_status(scratch() / server::stream_name))) std::abort();
    for (const fs::directory_entry& entry : fs::directory_iterator(scratch().parent_path()))
        if (entry.path() != scratch()) std::abort();
    for (const fs::directory_entry& entry : fs::directory_iterator(scratch())) {
        const std::string file = entry.path().filename().string();
        const bool ours = file == server::stream_name ||
                          std::ranges::find(server::portable_files, file) != server::portable_files.end();
        if (!ours || !fs::is_regular_file(entry.symlink_status())) std::abort();
    }
    fs::remove_all(scratch());
    return 0;
}
