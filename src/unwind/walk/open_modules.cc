// Which modules are open, and which one to close next.
#include "unwind/walk/open_modules.h"

#include <algorithm>
#include <utility>

namespace flamewire::unwind {

namespace {

// An open module takes a file descriptor (an agent often has a limit of 1,024) and a few hundred bytes.
constexpr std::size_t max_open = 256;
// Includes modules that could not be opened.
constexpr std::size_t max_slots = 4096;
// Minimum for pages, regardless of the size of the indexes.
constexpr std::size_t min_page_bytes = 16 * PageCache::page_size;

}  // namespace

OpenModules::OpenModules(ModuleFiles& files, OpenTables open_tables, std::size_t memory_bytes, TableWork& work)
    : files_(files),
      open_tables_(open_tables),
      work_(work),
      limit_bytes_(std::max(memory_bytes, min_page_bytes)),
      page_limit_(limit_bytes_),
      pages_(limit_bytes_) {}

OpenModules::Slots::iterator OpenModules::place_of(ModuleId module) {
    return std::ranges::lower_bound(slots_, module, {}, &Slot::id);
}

OpenModules::Slot* OpenModules::slot_of(ModuleId module) {
    const auto place = place_of(module);
    return place != slots_.end() && place->id == module ? &*place : nullptr;
}

ModuleTables* OpenModules::find(ModuleId module) {
    Slot* slot = slot_of(module);
    return slot != nullptr ? slot->tables.get() : nullptr;
}

ModuleTables* OpenModules::open(ModuleId module) {
    if (module == 0) return nullptr;
    if (Slot* slot = slot_of(module); slot != nullptr) {
        slot->used = ++clock_;
        return slot->tables.get();
    }
    if (slots_.size() >= max_slots) evict(module, false);
    if (open_ >= max_open) evict(module, true);
    Slot slot{.id = module, .used = ++clock_, .bytes = 0, .tables = nullptr};
    if (Result<elf::ByteSource> source = files_.open(module)) {
        if (auto tables = open_tables_(module, *std::move(source), pages_, work_)) slot.tables = *std::move(tables);
    }
    if (slot.tables) ++open_;
    ModuleTables* tables = slot.tables.get();
    slots_.insert(place_of(module), std::move(slot));
    account(module);
    return tables;
}

void OpenModules::account(ModuleId module) {
    Slot* slot = slot_of(module);
    if (slot != nullptr && slot->tables) {
        const std::size_t bytes = slot->tables->memory_bytes();
        index_bytes_ = index_bytes_ - slot->bytes + bytes;
        slot->bytes = bytes;
    }
    while (index_bytes_ > limit_bytes_ / 2 && evict(module, true)) {
    }
    const std::size_t taken = index_bytes_ + slots_.capacity() * sizeof(Slot);
    const std::size_t left = limit_bytes_ - std::min(taken, limit_bytes_ - min_page_bytes);
    if (left == page_limit_) return;
    page_limit_ = left;
    pages_.set_limit(left);
}

bool OpenModules::evict(ModuleId except, bool open_ones_only) {
    auto oldest = slots_.end();
    for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
        if (slot->id == except || (open_ones_only && !slot->tables)) continue;
        if (oldest == slots_.end() || slot->used < oldest->used) oldest = slot;
    }
    if (oldest == slots_.end()) return false;
    close(oldest);
    return true;
}

void OpenModules::close(Slots::iterator slot) {
    index_bytes_ -= slot->bytes;
    if (slot->tables) --open_;
    slots_.erase(slot);
}

void OpenModules::forget(ModuleId module) {
    const auto place = place_of(module);
    if (place != slots_.end() && place->id == module) close(place);
    pages_.forget(module);
}

std::size_t OpenModules::memory_bytes() const {
    return pages_.memory_bytes() + index_bytes_ + slots_.capacity() * sizeof(Slot);
}

}  // namespace flamewire::unwind
