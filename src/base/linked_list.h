// SPDX-License-Identifier: Apache-2.0
// Lists whose links are members of what is listed, so that joining and leaving allocate nothing.
#pragma once

#include <cstddef>
#include <utility>

namespace nereid::base {

// The place of an item in one list.
template <typename Item>
struct ListLinks {
  Item* next = nullptr;
  Item* previous = nullptr;
};

// A list of items; owns none. An item may be in several lists, with links of its own for each.
template <typename Item, ListLinks<Item> Item::* kLinks>
class LinkedList {
 public:
  Item* head() const { return head_; }
  bool empty() const { return head_ == nullptr; }
  size_t size() const { return size_; }

  // REQUIRES: `item` is not in the list.
  void PushBack(Item& item) {
    item.*kLinks = {.previous = tail_};
    (tail_ != nullptr ? (tail_->*kLinks).next : head_) = &item;
    tail_ = &item;
    ++size_;
  }
  // REQUIRES: `item` is not in the list.
  void PushFront(Item& item) {
    item.*kLinks = {.next = head_};
    (head_ != nullptr ? (head_->*kLinks).previous : tail_) = &item;
    head_ = &item;
    ++size_;
  }
  // REQUIRES: `item` is in the list.
  void Remove(Item& item) {
    const ListLinks<Item> links = std::exchange(item.*kLinks, {});
    (links.previous != nullptr ? (links.previous->*kLinks).next : head_) = links.next;
    (links.next != nullptr ? (links.next->*kLinks).previous : tail_) = links.previous;
    --size_;
  }

 private:
  Item* head_ = nullptr;
  Item* tail_ = nullptr;
  size_t size_ = 0;
};

}  // namespace nereid::base
