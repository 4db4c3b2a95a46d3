// A session file that an agent is writing, read as it grows into a store of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "profile/store/store.h"
#include "wire/session_file.h"

namespace flamewire::symbol {
class Symbolizer;
}

namespace flamewire::cli {

class LiveProfile {
public:
    LiveProfile(std::string path, symbol::Symbolizer& symbolizer) : path_(std::move(path)), symbolizer_(symbolizer) {}

    // Takes what was written since the last call, and names it; true when there was something. The file need not exist
    // yet.
    Result<bool> take();
    [[nodiscard]] const profile::Store& store() const { return store_; }

private:
    Result<bool> apply(const wire::SessionRecord& record);

    std::string path_;
    symbol::Symbolizer& symbolizer_;
    std::optional<wire::SessionReader> reader_;
    wire::EventPeriods periods_;
    std::uint32_t epoch_ = 0;
    profile::Store store_;
};

}  // namespace flamewire::cli
