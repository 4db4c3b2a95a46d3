#include "symbol/files/fetched_file.h"

#include <algorithm>
#include <cstdint>

#include "base/hex.h"

namespace flamewire::symbol {

std::string fetched_path(const std::string& folder, const ModuleIdentity& module) {
    // The owner may come from a file that another person wrote.
    const bool is_id =
        std::ranges::all_of(module.owner, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    if (folder.empty() || !is_id || module.owner.size() > 64) return {};
    return folder + (module.owner.empty() ? "/" : "/of-" + module.owner + "/") + fetched_name(module);
}

std::string fetched_name(const ModuleIdentity& module) {
    if (!module.build_id.empty()) return to_hex(module.build_id);
    const std::string text = module.path + '\0' + std::to_string(module.size) + '\0' + std::to_string(module.mtime_ns);
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: a name, not a cryptographic hash
    for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    std::string name = "without-build-id-";
    for (unsigned shift = 64; shift != 0; shift -= 4) name += "0123456789abcdef"[hash >> (shift - 4) & 15];
    return name;
}

}  // namespace flamewire::symbol
