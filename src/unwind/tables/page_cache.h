// Cache of file pages for unwinding, bounded in memory. Evicts the least recently used page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "elf/elf_file.h"
#include "unwind/tables/code_map.h"

namespace flamewire::unwind {

class PageCache {
public:
    static constexpr std::size_t page_size = 4096;

    explicit PageCache(std::size_t limit_bytes);
    ~PageCache();
    PageCache(const PageCache&) = delete;
    PageCache& operator=(const PageCache&) = delete;

    // The page with number offset / page_size of a module's file. Shorter at the end of the file. Empty after the end
    // or on a read error, which is cached like a page. Valid until the next call.
    Bytes page(ModuleId module, const elf::ByteSource& source, std::uint64_t number);

    void forget(ModuleId module);
    void set_limit(std::size_t limit_bytes);
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace flamewire::unwind
