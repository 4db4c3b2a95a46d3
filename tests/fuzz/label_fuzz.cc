// Arbitrary bytes as a change of a label from the page, as label.json, and as the text of --tag: an accepted label must
// be within its bounds, and the same after writing and reading.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/session/label.h"

using namespace flamewire::server;

namespace {

void check(const Label& label) {
    if (label.name.size() > max_session_name_bytes || label.tags.size() > max_tags) std::abort();
    for (const auto& [key, value] : label.tags)
        if (key.empty() || key.size() > max_tag_key_bytes || value.size() > max_tag_value_bytes) std::abort();
    const auto again = parse_label(encode_label(label));
    if (!again || *again != label) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto label = parse_label(text)) check(*label);
    if (const auto change = parse_label_change(text))
        if (const auto label = changed({"before", {{"a", "b"}}, true}, *change)) check(*label);
    if (const auto tag = parse_tag(text)) check({"", {*tag}, false});
    return 0;
}
