// Any bytes as a perf.data file: read to the end, and what becomes of it is what a store takes.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>

#include "profile/formats/perf_data/perf_data_import.h"
#include "profile/store.h"

using namespace flamewire;
using namespace flamewire::profile;

namespace {

class Job final : public ImportJob, public ImportSource {
public:
    explicit Job(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    ImportSource& source() override { return *this; }
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<char> into) override {
        if (offset >= bytes_.size()) return std::size_t{0};
        const auto rest = bytes_.subspan(static_cast<std::size_t>(offset));
        const auto part = rest.first(std::min(rest.size(), into.size()));
        std::copy(part.begin(), part.end(), into.begin());
        return part.size();
    }
    [[nodiscard]] const std::string& name() const override { return name_; }
    RecordingBuilder& begin(wire::Recording about, std::int64_t realtime_ns) override {
        if (builder_) std::abort();
        return builder_.emplace(wire::RecordingId{1}, std::move(about), realtime_ns,
                                [this](wire::Batch batch) { return take(std::move(batch)); });
    }
    // Nothing of this machine may come into it.
    [[nodiscard]] std::string module_file(const symbol::ModuleIdentity&) override { return {}; }
    void progress(std::uint64_t read_bytes) override {
        if (read_bytes > bytes_.size()) std::abort();
    }
    void finish() {
        if (builder_ && !builder_->finish("imported")) std::abort();
    }

private:
    Result<bool> take(wire::Batch batch) {
        wire::learn_periods(batch, periods_);
        const std::string bytes = wire::encode(batch, periods_);
        // What the importer makes is always right.
        const auto arrived = wire::decode(as_bytes_view(bytes), theirs_);
        if (!arrived) wrong(arrived.error());
        if (const auto applied = store_.apply(*arrived); !applied) wrong(applied.error());
        return true;
    }
    [[noreturn]] static void wrong(const Error& error) {
        std::fprintf(stderr, "%s\n", error.message.c_str());
        std::abort();
    }

    std::span<const std::uint8_t> bytes_;
    std::string name_ = "perf.data";
    wire::EventPeriods periods_, theirs_;
    Store store_;
    std::optional<RecordingBuilder> builder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Job job({data, size});
    const Result<bool> done = perf_data::import_perf_data(job);
    if (!done && done.error().message.empty()) std::abort();
    if (done) job.finish();
    return 0;
}
