// Reads a session file into a store while an agent writes it.
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

    // Reads what was written since the last call and symbolizes it. Returns true if there was anything. The file need
    // not exist yet.
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
