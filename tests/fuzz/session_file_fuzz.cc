// Any bytes as a session file: read to the end, opened for appending (which cuts a torn tail), read again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/file.h"
#include "wire/session_file.h"

using namespace flamewire;
using namespace flamewire::wire;

namespace {

// Records up to the end, or nothing when there is an error.
std::optional<std::size_t> count_records(const std::string& path, bool& torn) {
    auto reader = SessionReader::open(path);
    if (!reader) return std::nullopt;
    for (std::size_t count = 0;; ++count) {
        const auto record = reader->next();
        if (!record) return std::nullopt;
        torn = reader->torn();
        if (!*record) return count;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const UniqueFd file(::memfd_create("session", MFD_CLOEXEC));
    if (!write_all(file.get(), std::as_bytes(std::span(data, size)))) return 0;
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    bool torn = false;
    const auto before = count_records(path, torn);
    auto writer = SessionWriter::append_to(path);
    if (before.has_value() && !writer) std::abort();
    if (!writer || !writer->append(1, Flag::reply, "{}")) return 0;
    const auto after = count_records(path, torn);
    if (!after || torn || *after != before.value_or(0) + 1) std::abort();
    return 0;
}
