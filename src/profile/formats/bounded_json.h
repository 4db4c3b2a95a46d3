// JSON of an export, up to a limit of bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "base/result.h"
#include "profile/formats/export_limit.h"

namespace flamewire::profile {

// A stream of RapidJSON that accepts no more text once it exceeds `max_bytes`.
class BoundedText {
public:
    explicit BoundedText(std::size_t max_bytes) : max_bytes_(max_bytes) {}
    [[nodiscard]] bool full() const { return text_.size() > max_bytes_; }
    // too_large: the limit was exceeded. `as`: what the export is, for example "a profile for speedscope".
    Result<std::string> take(std::string_view as) {
        if (full()) return export_too_large(as, max_bytes_);
        return std::move(text_);
    }
    // What RapidJSON requires of a stream. NOLINTBEGIN(readability-identifier-naming)
    using Ch = char;
    void Put(char c) {
        if (!full()) text_ += c;
    }
    void Flush() {}
    // NOLINTEND(readability-identifier-naming)

private:
    std::size_t max_bytes_;
    std::string text_;
};

class BoundedJson : public BasicJsonWriter<BoundedText> {
public:
    explicit BoundedJson(BoundedText& text) : BasicJsonWriter(text), text_(text) {}
    // The text exceeds its limit: stop writing.
    [[nodiscard]] bool full() const { return text_.full(); }
    // Like list(), but stops when the text is full.
    template <class Range, class Write>
    void bounded_list(std::string_view name, const Range& range, Write write) {
        array(name);
        for (const auto& element : range) {
            if (full()) break;
            write(element);
        }
        end_array();
    }

private:
    const BoundedText& text_;
};

}  // namespace flamewire::profile
