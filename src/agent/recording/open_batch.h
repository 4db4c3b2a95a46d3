// What the folder collects for the next batch: passes it on, and keeps whether there is anything to send. Use it only
// on the sampler thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/pipeline/folder.h"
#include "wire/batch.h"

namespace flamewire::agent {

class OpenBatch {
public:
    // A batch has at most as many rows as samples. At this limit the batch is closed early, or its rows are dropped.
    static constexpr std::uint64_t max_samples = wire::max_batch_rows / 2;

    // `folder` must outlive this.
    explicit OpenBatch(Folder& folder) : folder_(folder) {}

    void add_notice(std::string code, std::string text, std::string remedy);
    // These also appear on stderr.
    void add_notices(std::vector<wire::Notice> notices);
    void add_loss(const wire::Loss& loss);
    void add_symbols(std::span<const TargetSymbol> symbols);
    // The folder got something else.
    void mark() { has_content_ = true; }
    void add_sample() { ++samples_; }
    // The batch was closed, so the next one begins.
    void begin() {
        samples_ = 0;
        has_content_ = false;
    }

    [[nodiscard]] bool has_content() const { return has_content_; }
    [[nodiscard]] bool full() const { return samples_ >= max_samples; }

private:
    Folder& folder_;
    bool has_content_ = false;
    std::uint64_t samples_ = 0;
};

}  // namespace flamewire::agent
