#include <cstddef>

#include "profile/formats/import.h"

namespace flamewire::profile {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

}  // namespace

Result<bool> read_through(ImportJob& job, const std::function<Result<bool>(std::string_view)>& each) {
    std::string piece(piece_bytes, '\0');
    for (std::uint64_t offset = 0;;) {
        const std::size_t got = TRY(job.source().read_at(offset, piece));
        if (got == 0) return true;
        offset += got;
        TRY(each(std::string_view(piece).substr(0, got)));
        job.progress(offset);
    }
}

}  // namespace flamewire::profile
