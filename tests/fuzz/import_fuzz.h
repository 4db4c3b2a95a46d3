// Shared by the fuzzers of imports: arbitrary bytes as a file of one format, imported through wire messages into a
// store, as in the server. An importer may refuse the bytes. Otherwise its batches must be valid for a store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "profile/formats/import.h"
#include "profile/store/store.h"

namespace flamewire::profile {

class FuzzedImport final : public ImportJob, ImportSource {
public:
    explicit FuzzedImport(std::string_view bytes) : bytes_(bytes) {}

    void run(std::string_view format) {
        (void)recognise_import(bytes_);
        for (const ImportFormat& one : import_formats()) {
            if (one.name != format) continue;
            (void)one.recognises(bytes_);
            const Result<bool> done = one.import(*this);
            if (!done && done.error().message.empty()) std::abort();
            if (done && builder_) (void)builder_->finish("imported");
            return;
        }
        std::abort();
    }

private:
    ImportSource& source() override { return *this; }
    [[nodiscard]] const std::string& name() const override { return name_; }
    RecordingBuilder& begin(wire::Recording about, std::int64_t realtime_ns) override {
        if (builder_) std::abort();
        return builder_.emplace(
            wire::RecordingId{1}, std::move(about), realtime_ns, [this](wire::Batch batch) -> Result<bool> {
                wire::learn_periods(batch, periods_);
                const auto arrived = wire::decode(as_bytes_view(wire::encode(batch, periods_)), theirs_);
                if (!arrived || !store_.apply(*arrived)) std::abort();
                return true;
            });
    }
    // Data of this machine must not affect the result.
    [[nodiscard]] std::string module_file(const symbol::ModuleIdentity& /*module*/) override { return {}; }
    void progress(std::uint64_t read_bytes) override {
        if (read_bytes > bytes_.size()) std::abort();
    }
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        if (offset >= bytes_.size()) return std::size_t{0};
        const std::size_t size = std::min(into.size(), bytes_.size() - static_cast<std::size_t>(offset));
        std::memcpy(into.data(), bytes_.data() + offset, size);
        return size;
    }

    std::string_view bytes_;
    std::string name_ = "file";
    Store store_;
    std::optional<RecordingBuilder> builder_;
    wire::EventPeriods periods_, theirs_;
};

}  // namespace flamewire::profile

#define FLAMEWIRE_FUZZ_IMPORT(format)                                                              \
    extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {            \
        flamewire::profile::FuzzedImport({reinterpret_cast<const char*>(data), size}).run(format); \
        return 0;                                                                                  \
    }
