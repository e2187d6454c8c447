/** Computes the visible rows of a long list: a thin Svelte wrapper around TanStack Virtual. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer, type VirtualItem } from "@tanstack/virtual-core";

export class VisibleRows {
  #virtual: Virtualizer<HTMLElement, HTMLElement> | undefined;
  items = $state.raw<VirtualItem[]>([]);
  height = $state(0);

  attach(element: HTMLElement, count: number, rowHeight: number, head: number): () => void {
    const virtual = new Virtualizer<HTMLElement, HTMLElement>({
      count,
      getScrollElement: () => element,
      estimateSize: () => rowHeight,
      overscan: 12,
      scrollMargin: head,
      scrollPaddingStart: head,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      onChange: (changed) => {
        this.items = changed.getVirtualItems();
        this.height = changed.getTotalSize();
      },
    });
    this.#virtual = virtual;
    const end = virtual._didMount();
    virtual._willUpdate();
    this.items = virtual.getVirtualItems();
    this.height = virtual.getTotalSize();
    return end;
  }

  resize(count: number): void {
    const virtual = this.#virtual;
    if (!virtual || virtual.options.count === count) return;
    virtual.setOptions({ ...virtual.options, count });
    virtual.measure();
    this.items = virtual.getVirtualItems();
    this.height = virtual.getTotalSize();
  }

  reveal(index: number): void {
    this.#virtual?.scrollToIndex(index, { align: "auto" });
  }
}
